#include "scheduler/placement/fragmentation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>
#include <unordered_map>

#include "scheduler/base/rng.h"

namespace mortise::placement {

namespace {
// A pod without a CPU request counts as this much, as Kubernetes does for pods that ask for nothing.
constexpr MilliCpu kDefaultCpu = 100;
constexpr std::int64_t kCoveredPercent = 95;

using ClassKey = std::tuple<MilliCpu, MilliGpu, std::int32_t, std::string>;

// What a class cannot use on a node, in the published order: its sums are added up in this order, too.
enum Part { kLackBoth, kLackGpu, kSatisfied, kLackCpu, kCpuPodFits, kCpuPodLacks, kNoAccess, kParts };
}  // namespace

TypicalPods::TypicalPods(std::span<const PodClass> pods, ClusterState& cluster) {
  struct Entry {
    ClassKey key;
    const PodClass* pod;
    std::int64_t count;
  };
  std::map<ClassKey, Entry> counted;
  for (const PodClass& pod : pods) {
    const ClassKey key{pod.cpu == 0 ? kDefaultCpu : pod.cpu, pod.gpu_milli, pod.gpus, pod.gpu_spec};
    ++counted.try_emplace(key, Entry{key, &pod, 0}).first->second.count;
  }
  std::vector<Entry> order;
  for (const auto& [key, entry] : counted) order.push_back(entry);
  std::sort(order.begin(), order.end(), [](const Entry& a, const Entry& b) {
    if (a.count != b.count) return a.count > b.count;
    return a.key > b.key;
  });

  const auto all = static_cast<std::int64_t>(pods.size());
  std::int64_t kept = 0;
  std::size_t classes = 0;
  for (; classes < order.size() && kept * 100 < kCoveredPercent * all; ++classes) kept += order[classes].count;
  // Not count / kept: the last bit of this form decides some of the published placements.
  const double covered = static_cast<double>(kept) / static_cast<double>(all);
  for (std::size_t i = 0; i < classes; ++i) {
    const Entry& entry = order[i];
    TypicalPod typical{std::get<0>(entry.key), entry.pod->gpu_milli, entry.pod->gpus, {}, 0};
    for (const std::string& model : entry.pod->models) typical.models.push_back(cluster.intern_model(model));
    std::sort(typical.models.begin(), typical.models.end());
    typical.weight = static_cast<double>(entry.count) / static_cast<double>(all) / covered;
    classes_.push_back(std::move(typical));
  }
}

struct FragmentationModel::Impl {
  // F depends on the CPU left only through which classes' requests it covers, and not on the devices' order.
  struct Key {
    std::uint16_t cpu_rank = 0;
    std::uint16_t count = 0;
    std::uint32_t model = 0;
    std::array<std::int16_t, 16> left{};  // descending

    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept {
      std::uint64_t h = mix64((std::uint64_t{key.model} << 32) | (std::uint64_t{key.cpu_rank} << 16) | key.count);
      for (std::size_t i = 0; i < key.count; i += 4) {
        std::uint64_t four = 0;
        for (std::size_t j = 0; j < 4; ++j) four = (four << 16) | static_cast<std::uint16_t>(key.left[i + j]);
        h = mix64(h ^ four);
      }
      return h;
    }
  };
  static constexpr std::size_t kMaxRemembered = 1 << 20;

  std::vector<TypicalPod> classes;
  std::vector<MilliCpu> cpu_steps;  // the classes' requests, ascending, each once
  std::unordered_map<Key, double, KeyHash> known;

  double evaluate(MilliCpu cpu_free, std::span<const std::int16_t> free, ModelId model) const;
};

FragmentationModel::FragmentationModel(const TypicalPods& typical) : impl_(std::make_unique<Impl>()) {
  impl_->classes.assign(typical.classes().begin(), typical.classes().end());
  for (const TypicalPod& pod : impl_->classes) impl_->cpu_steps.push_back(pod.cpu);
  std::sort(impl_->cpu_steps.begin(), impl_->cpu_steps.end());
  impl_->cpu_steps.erase(std::unique(impl_->cpu_steps.begin(), impl_->cpu_steps.end()), impl_->cpu_steps.end());
}
FragmentationModel::~FragmentationModel() = default;

double FragmentationModel::Impl::evaluate(MilliCpu cpu_free, std::span<const std::int16_t> free, ModelId model) const {
  std::int64_t all = 0;
  for (const std::int16_t left : free) all += left;
  std::array<double, kParts> parts{};
  for (const TypicalPod& pod : classes) {
    const bool cpu_fits = cpu_free >= pod.cpu;
    if (pod.gpus == 0) {
      parts[cpu_fits ? kCpuPodFits : kCpuPodLacks] += pod.weight * static_cast<double>(all);
      continue;
    }
    if (!pod.models.empty() && !std::binary_search(pod.models.begin(), pod.models.end(), model)) {
      parts[kNoAccess] += pod.weight * static_cast<double>(all);
      continue;
    }
    std::int32_t enough = 0;
    std::int64_t small = 0;  // left on devices too small for this class
    for (const std::int16_t left : free) {
      if (left >= pod.gpu_milli) {
        ++enough;
      } else {
        small += left;
      }
    }
    if (enough >= pod.gpus && cpu_fits) {
      parts[kLackGpu] += pod.weight * static_cast<double>(small);
      parts[kSatisfied] += pod.weight * static_cast<double>(all - small);
    } else if (enough >= pod.gpus) {
      parts[kLackCpu] += pod.weight * static_cast<double>(all);
    } else {
      parts[cpu_fits ? kLackGpu : kLackBoth] += pod.weight * static_cast<double>(all);
    }
  }
  double amount = 0;
  for (const Part part : {kLackBoth, kLackGpu, kLackCpu, kCpuPodFits, kCpuPodLacks, kNoAccess}) amount += parts[part];
  return amount;
}

double FragmentationModel::amount(MilliCpu cpu_free, std::span<const std::int16_t> free, ModelId model) {
  Impl::Key key;
  if (free.size() > key.left.size()) return impl_->evaluate(cpu_free, free, model);
  const auto& steps = impl_->cpu_steps;
  key.cpu_rank = static_cast<std::uint16_t>(std::upper_bound(steps.begin(), steps.end(), cpu_free) - steps.begin());
  key.count = static_cast<std::uint16_t>(free.size());
  key.model = model.value;
  std::copy(free.begin(), free.end(), key.left.begin());
  std::sort(key.left.begin(), key.left.begin() + key.count, std::greater<>());
  if (const auto found = impl_->known.find(key); found != impl_->known.end()) return found->second;
  if (impl_->known.size() >= Impl::kMaxRemembered) impl_->known.clear();
  const double value = impl_->evaluate(cpu_free, free, model);
  impl_->known.emplace(key, value);
  return value;
}

FragmentationMeter::FragmentationMeter(const ClusterState& cluster, const TypicalPods& typical)
    : cluster_(cluster), model_(typical) {}

double FragmentationMeter::amount() {
  constexpr double kMillionths = 1e6;
  const StateTable& states = cluster_.states();
  const auto recount = [&](StateId id) {
    const auto nodes = static_cast<std::int64_t>(states.members(id).size());
    std::int64_t mine = 0;
    if (nodes > 0) {
      const NodeState& state = states.state(id);
      const double one = model_.amount(state.cpu_free, state.free_devices(), cluster_.machine(state.machine).model);
      mine = nodes * std::llround(one * kMillionths);
    }
    total_ += mine - per_slot_[id.index()];
    per_slot_[id.index()] = mine;
  };
  per_slot_.resize(states.slot_count(), 0);
  const StateTable::Changes changes = states.changes_since(seen_);
  if (changes.complete) {
    for (const StateId id : changes.slots) recount(id);
  } else {
    for (std::uint32_t s = 0; s < states.slot_count(); ++s) recount(StateId{s});
  }
  seen_ = states.log_end();
  return static_cast<double>(total_) / kMillionths;
}

}  // namespace mortise::placement
