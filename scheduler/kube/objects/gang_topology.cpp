#include <string>
#include <string_view>
#include <vector>

#include "scheduler/kube/objects/gang_keys.h"
#include "scheduler/kube/objects/gang_readers.h"

namespace mortise::kube {
namespace {

/// An annotation with a level and what it means. `unit_label` names the label that tells which members belong together.
struct Key {
  std::string_view annotation;
  bool required;
  bool exclusive;
  std::string_view unit_label;
};

constexpr Key kOwn[] = {{kTopologyRequiredAnnotation, true, false, {}},
                        {kTopologyPreferredAnnotation, false, false, {}}};
constexpr Key kKueue[] = {{"kueue.x-k8s.io/podset-required-topology", true, false, {}},
                          {"kueue.x-k8s.io/podset-preferred-topology", false, false, {}}};
constexpr Key kExclusive[] = {
    {keys::kLwsExclusive, true, true, {}},
    {"leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology", true, true, "leaderworkerset.sigs.k8s.io/subgroup-key"},
    {"alpha.jobset.sigs.k8s.io/exclusive-topology", true, true, "jobset.sigs.k8s.io/job-key"}};

template <std::size_t N>
Result<std::vector<TopologyAsk>> read_keys(const Pod& pod, const Key (&all)[N]) {
  std::vector<TopologyAsk> asks;
  for (const Key& key : all) {
    const auto found = pod.annotations.find(std::string(key.annotation));
    if (found == pod.annotations.end()) continue;
    if (found->second.empty()) return Error{"annotation " + found->first + " is empty; it must name a level"};
    asks.push_back({found->second, key.required, key.exclusive, label(pod, key.unit_label)});
  }
  return asks;
}

}  // namespace

Status read_topology_asks(const Pod& pod, GangRef& gang) {
  auto own = read_keys(pod, kOwn);
  if (!own) return own.error();
  if (!own->empty()) {
    gang.topology = *std::move(own);
    return ok_status();
  }
  auto kueue = read_keys(pod, kKueue);
  if (!kueue) return kueue.error();
  if (kueue->size() > 1) {
    return Error{
        "annotations kueue.x-k8s.io/podset-required-topology and podset-preferred-topology exclude each other"};
  }
  // Kueue asks per pod set, which is a role here, or per group of them.
  for (TopologyAsk& ask : *kueue) {
    const std::string joined = annotation(pod, "kueue.x-k8s.io/podset-group-name");
    ask.unit = joined.empty() ? gang.role : joined;
    gang.topology.push_back(std::move(ask));
  }
  auto exclusive = read_keys(pod, kExclusive);
  if (!exclusive) return exclusive.error();
  gang.topology.insert(gang.topology.end(), exclusive->begin(), exclusive->end());
  return ok_status();
}

}  // namespace mortise::kube
