#include "scheduler/extender/startup.h"

#include <optional>
#include <utility>

#include "scheduler/kube/objects/bound_pods.h"
#include "scheduler/placement/policy.h"
#include "traces/formats.h"
#include "traces/synth.h"
#include "traces/workload.h"

namespace mortise::extender {
namespace {

Result<placement::TypicalPods> typical_pods(const std::string& file, placement::ClusterState& cluster) {
  const Result<traces::Trace> trace = file.empty() ? traces::typical_sample() : traces::read_trace_file(file);
  if (!trace.ok()) return trace.error();
  std::vector<placement::PodClass> classes;
  classes.reserve(trace->pods.size());
  for (const traces::PodRecord& pod : trace->pods) {
    classes.push_back({pod.cpu, pod.gpu_milli, pod.gpus, pod.gpu_spec, traces::split_models(pod.gpu_spec)});
  }
  return placement::TypicalPods(classes, cluster);
}

}  // namespace

Result<LoadedCluster> load(const StartOptions& options) {
  auto levels = placement::parse_levels(options.levels);
  if (!levels.ok()) return levels.error();
  Result<kube::ClusterFile> file = kube::ClusterFile{};
  if (!options.cluster.empty()) file = kube::load_cluster_file(options.cluster, {.catalogue = options.catalogue});
  if (!file.ok()) return file.error();
  if (!options.cluster.empty()) kube::note_unused_levels(*levels, *file);
  std::optional<kube::NodeRanks> ranks;
  if (!options.node_rank.empty()) {
    Result<kube::NodeRanks> read = kube::load_node_ranks(options.node_rank);
    if (!read.ok()) return read.error();
    ranks = *std::move(read);
  }
  const std::vector<kube::BoundPod> pods = std::exchange(file->pods, {});
  auto state = kube::build_cluster(*file, ranks ? &*ranks : nullptr, options.seed);
  if (!state.ok()) return Error{options.cluster + ": " + state.message()};
  const auto typical = typical_pods(options.typical, **state);
  if (!typical.ok()) return typical.error();
  auto policy = placement::make_policy(options.policy, *typical);
  if (!policy.ok()) return policy.error();
  auto gang_policy = placement::make_policy(options.policy, *typical);
  if (!gang_policy.ok()) return gang_policy.error();

  LoadedCluster loaded;
  loaded.state = *std::move(state);
  loaded.gang_policy = *std::move(gang_policy);
  loaded.domains = levels->empty() ? std::make_unique<placement::Domains>(*loaded.state)
                                   : std::make_unique<placement::Domains>(*loaded.state, *std::move(levels));
  for (std::size_t i = 0; i < file->nodes.size(); ++i) {
    const std::vector<placement::Label> labels(file->labels[i].begin(), file->labels[i].end());
    if (const auto node = loaded.state->find_node(file->nodes[i].name)) loaded.domains->set_node(*node, labels);
  }
  loaded.bookings = std::make_unique<Bookings>(*loaded.state);
  for (const std::size_t i : kube::booking_order(pods)) {
    placement::PodRequest request = pods[i].request;
    if (request.uid.empty()) request.uid = request.ns + "/" + request.name;
    loaded.bookings->bound(request, pods[i].node, pods[i].devices);
    if (pods[i].start) loaded.bookings->started(request.uid, *pods[i].start);
  }
  loaded.engine = std::make_unique<placement::Engine>(*loaded.state, *std::move(policy), options.seed);
  loaded.fragmentation = std::make_unique<placement::FragmentationMeter>(*loaded.state, *typical);
  loaded.placed = std::move(file->placed);
  for (kube::Pod& pod : loaded.placed) {
    if (pod.uid.empty()) pod.uid = pod.key();
  }
  loaded.groups = std::move(file->groups);
  loaded.notes = std::move(file->notes);
  return loaded;
}

void tell_gangs(const LoadedCluster& cluster, GangFeed& feed) {
  for (const kube::GroupObject& group : cluster.groups) feed.put({}, group);
  for (const kube::Pod& pod : cluster.placed) {
    if (cluster.bookings->find(pod.uid) != nullptr) feed.update(pod);
  }
}

}  // namespace mortise::extender
