#include "tests/support/node_agent.h"

#include <algorithm>
#include <vector>

namespace mortise::test {

using placement::GpuMask;
using placement::Hold;
using topology::IndexSet;

Result<IndexSet> NodeAgent::prefer(const IndexSet& available, const IndexSet& must_include, std::int64_t size) {
  topology::GpuSet free = 0;
  topology::GpuSet required = 0;
  available.for_each([&](std::size_t d) { free |= topology::gpu_bit(static_cast<int>(d)); });
  must_include.for_each([&](std::size_t d) { required |= topology::gpu_bit(static_cast<int>(d)); });
  const auto outcomes = node_.sets()->plugin().outcomes(free, required, static_cast<int>(size));
  IndexSet answer;
  if (outcomes.sets.empty()) return answer;
  topology::for_each_gpu(outcomes.sets[rng_.below(outcomes.sets.size())],
                         [&](int gpu) { answer.insert(static_cast<std::size_t>(gpu)); });
  return answer;
}

std::optional<Hold> NodeAgent::admit(AllocationId id, const placement::PodAlignment& pod) {
  topology::PreferredAllocation preferred;
  if (node_.plugin_known() && !node_.enforced()) {
    // One answer per question, as a plugin within one admission: drawn anew, it would not be a pure function.
    preferred = [this, asked = std::map<std::vector<std::size_t>, IndexSet>{}](
                    std::size_t, const IndexSet& available, const IndexSet& must,
                    std::int64_t size) mutable -> Result<IndexSet> {
      std::vector<std::size_t> key = {static_cast<std::size_t>(size)};
      available.for_each([&](std::size_t d) { key.push_back(d); });
      must.for_each([&](std::size_t d) { key.push_back(1000 + d); });
      const auto known = asked.find(key);
      if (known != asked.end()) return known->second;
      Result<IndexSet> answer = prefer(available, must, size);
      if (answer) asked.emplace(key, *answer);
      return answer;
    };
  }
  const auto admission = manager_.admit(now_, node_.kubelet(), pod.ask, preferred);
  if (!admission || admission->outcomes.empty()) return std::nullopt;
  const topology::Outcome& outcome = admission->outcomes[rng_.below(admission->outcomes.size())];
  if (!outcome.admit) return std::nullopt;
  Hold hold;
  std::map<topology::NumaMask, Bytes> left_by_init;
  for (std::size_t i = 0; i < outcome.containers.size(); ++i) {
    const topology::ContainerOutcome& container = outcome.containers[i];
    hold.cpus |= container.cpus;
    for (const topology::DeviceGrant& grant : container.devices) {
      grant.exact.for_each([&](std::size_t d) { hold.gpus |= GpuMask{1} << d; });
      for (const topology::SomeDevices& some : grant.some) {
        std::vector<std::size_t> pool;
        some.of.for_each([&](std::size_t d) { pool.push_back(d); });
        rng_.shuffle(pool);
        for (std::int64_t k = 0; k < some.count; ++k) hold.gpus |= GpuMask{1} << pool[static_cast<std::size_t>(k)];
      }
    }
    const topology::ContainerAsk& ask = pod.ask.containers[i];
    if (container.memory == 0 || ask.memory.empty()) continue;
    // What an init container had is used again before more is taken.
    Bytes size = ask.memory.front().size;
    Bytes& left = left_by_init[container.memory];
    const Bytes again = std::min(left, size);
    if (ask.role != topology::ContainerRole::kInit) left -= again;
    if (size > again) hold.memory.push_back({container.memory, 0, size - again});
    if (ask.role == topology::ContainerRole::kInit) left = std::max(left, size);
  }
  pods_[id] = hold;
  refresh();
  return hold;
}

void NodeAgent::release(AllocationId id) {
  pods_.erase(id);
  refresh();
}

void NodeAgent::refresh() {
  held_gpus_ = 0;
  held_cpus_ = {};
  now_.memory = node_.empty_node().memory;
  for (const auto& [id, hold] : pods_) {
    held_gpus_ |= hold.gpus;
    held_cpus_ |= hold.cpus;
    for (const topology::MemoryBlock& block : hold.memory) topology::take_memory(now_.memory, block);
  }
  auto& devices = now_.devices.front().devices;
  for (std::size_t d = 0; d < devices.size(); ++d) devices[d].allocated = (held_gpus_ >> d & 1) != 0;
  now_.shared_cpus = node_.empty_node().shared_cpus - held_cpus_;
}

}  // namespace mortise::test
