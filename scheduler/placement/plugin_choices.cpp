#include "scheduler/placement/plugin_choices.h"

#include <cstdint>

namespace mortise::placement {
namespace {

using topology::GpuSet;
using topology::IndexSet;

GpuSet set_of(const IndexSet& devices) {
  GpuSet set = 0;
  devices.for_each([&](std::size_t device) { set |= topology::gpu_bit(static_cast<int>(device)); });
  return set;
}

IndexSet devices_of(GpuSet set) {
  IndexSet devices;
  topology::for_each_gpu(set, [&](int gpu) { devices.insert(static_cast<std::size_t>(gpu)); });
  return devices;
}

}  // namespace

topology::PreferredAllocation PluginChoices::preference() {
  if (silent_) return {};
  return [this](std::size_t, const IndexSet& available, const IndexSet& must_include, std::int64_t size) {
    return answer(available, must_include, size);
  };
}

Result<IndexSet> PluginChoices::answer(const IndexSet& available, const IndexSet& must_include, std::int64_t size) {
  const topology::PluginOutcomes outcomes =
      node_.sets()->plugin().outcomes(set_of(available), set_of(must_include), static_cast<int>(size));
  const std::size_t answers = outcomes.sets.size() + (outcomes.may_fail ? 1 : 0);
  if (answers == 0) return IndexSet{};
  if (at_ == questions_.size()) questions_.push_back({0, answers});
  const std::size_t mine = questions_[at_++].answer;
  if (mine == outcomes.sets.size()) return Error{"the device plugin has no set of this size"};
  return devices_of(outcomes.sets[mine]);
}

bool PluginChoices::next() {
  if (++rounds_ >= kMaxRounds) return false;
  questions_.resize(at_);
  while (!questions_.empty()) {
    if (++questions_.back().answer < questions_.back().answers) return true;
    questions_.pop_back();
  }
  return false;
}

}  // namespace mortise::placement
