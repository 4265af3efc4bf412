#include "scheduler/topology/device_sets.h"

#include <array>
#include <cassert>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "scheduler/topology/best_sets.h"

namespace mortise::topology {
namespace {

constexpr std::array kObjectives{
    ObjectiveInfo{Objective::kBottleneck, "bottleneck", "most bandwidth of the slowest pair in the set"},
    ObjectiveInfo{Objective::kRing, "ring", "most bandwidth of the slowest link of the best ring through the set"},
    ObjectiveInfo{Objective::kTotal, "total", "most bandwidth summed over the pairs of the set"},
    ObjectiveInfo{Objective::kNvidia, "nvidia", "the set that NVIDIA's device plugin prefers"},
};
// The objectives that are a number of the set come first.
constexpr auto kRanked = static_cast<std::size_t>(Objective::kNvidia);

// What the name says, then the others: so that no choice between sets of different bandwidth is left to their indices.
constexpr std::array<SetMerit (*)(const SetValue&), kRanked> kMerits{
    [](const SetValue& value) {
      return SetMerit{value.bottleneck, value.total, value.ring};
    },
    [](const SetValue& value) {
      return SetMerit{value.ring, value.total, value.bottleneck};
    },
    [](const SetValue& value) {
      return SetMerit{value.total, value.bottleneck, value.ring};
    },
};

constexpr int kMaxNicDistance = 1'000'000;

// A value made when first asked for, by one of the threads that ask; reading it later takes no lock.
template <class T>
class Lazy {
 public:
  template <class Make>
  const T& get(Make&& make) {
    std::call_once(made_, [&] { value_.emplace(make()); });
    return *value_;
  }

 private:
  std::once_flag made_;
  std::optional<T> value_;
};

}  // namespace

struct DeviceSets::Tables {
  PairMatrix bandwidth;
  PairMatrix plugin_scores;
  std::vector<int> nic_distance;
  Lazy<SetValues> values;
  std::array<Lazy<BestSets>, kRanked> best;
  Lazy<PluginSets> plugin;

  const SetValues& all_values() {
    return values.get([&] { return SetValues(bandwidth); });
  }
};

std::span<const ObjectiveInfo> objective_table() {
  return kObjectives;
}

Result<Objective> parse_objective(std::string_view name) {
  std::string known;
  for (const ObjectiveInfo& info : kObjectives) {
    if (info.name == name) return info.objective;
    known += (known.empty() ? "" : ", ") + std::string(info.name);
  }
  return Error{"unknown objective '" + std::string(name) + "'; known: " + known};
}

std::string_view name_of(Objective objective) {
  return kObjectives[static_cast<std::size_t>(objective)].name;
}

DeviceSets::DeviceSets(std::unique_ptr<Tables> tables) : tables_(std::move(tables)) {}
DeviceSets::DeviceSets(DeviceSets&&) noexcept = default;
DeviceSets& DeviceSets::operator=(DeviceSets&&) noexcept = default;
DeviceSets::~DeviceSets() = default;

Result<DeviceSets> DeviceSets::of(PairMatrix bandwidth, PairMatrix plugin_scores, std::vector<int> nic_distance) {
  if (Status status = check_pairs(bandwidth, "bandwidth"); !status) return status.error();
  if (Status status = check_pairs(plugin_scores, "plugin scores"); !status) return status.error();
  if (bandwidth.gpus != plugin_scores.gpus) {
    return Error{"plugin scores of " + std::to_string(plugin_scores.gpus) + " GPUs beside the bandwidth of " +
                 std::to_string(bandwidth.gpus)};
  }
  if (!nic_distance.empty() && nic_distance.size() != static_cast<std::size_t>(bandwidth.gpus)) {
    return Error{std::to_string(nic_distance.size()) + " NIC distances for " + std::to_string(bandwidth.gpus) +
                 " GPUs; allowed is none or one per GPU"};
  }
  for (const int distance : nic_distance) {
    if (distance < 0 || distance > kMaxNicDistance) {
      return Error{"NIC distance " + std::to_string(distance) + "; allowed is 0 to " + std::to_string(kMaxNicDistance)};
    }
  }
  auto tables = std::make_unique<Tables>();
  tables->bandwidth = std::move(bandwidth);
  tables->plugin_scores = std::move(plugin_scores);
  tables->nic_distance = std::move(nic_distance);
  return DeviceSets(std::move(tables));
}

int DeviceSets::gpus() const {
  return tables_->bandwidth.gpus;
}

GpuSet DeviceSets::all() const {
  return gpu_bit(gpus()) - 1;
}

GpuSet DeviceSets::best(Objective objective, GpuSet free, int count) const {
  assert((free & ~all()) == 0);
  if (objective == Objective::kNvidia) return plugin().pick(free, count).set;
  const auto index = static_cast<std::size_t>(objective);
  const BestSets& sets =
      tables_->best[index].get([&] { return BestSets(tables_->all_values(), kMerits[index], tables_->nic_distance); });
  return sets.best(free, count);
}

SetValue DeviceSets::value(GpuSet set) const {
  assert((set & ~all()) == 0);
  return tables_->all_values().of(set);
}

const PluginSets& DeviceSets::plugin() const {
  return tables_->plugin.get([&] { return PluginSets(SetValues(tables_->plugin_scores)); });
}

}  // namespace mortise::topology
