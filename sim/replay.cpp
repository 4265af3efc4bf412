#include "sim/replay.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "scheduler/base/clock.h"
#include "scheduler/placement/engine.h"
#include "scheduler/placement/fragmentation.h"
#include "scheduler/placement/policy.h"
#include "sim/gang_placer.h"
#include "sim/placement_log.h"
#include "sim/topology_meter.h"

namespace mortise::sim {

namespace {

using placement::ClusterState;
using placement::Engine;
using placement::FragmentationMeter;
using placement::PodRequest;

/// The cluster and what watches it during one run.
class Run {
 public:
  Run(const ReplaySpec& spec, std::unique_ptr<ClusterState> cluster, std::unique_ptr<placement::Policy> policy,
      const placement::TypicalPods& typical)
      : spec_(spec),
        cluster_(std::move(cluster)),
        engine_(*cluster_, std::move(policy), spec.seed),
        meter_(*cluster_, typical),
        requests_(spec.workload.requests().begin(), spec.workload.requests().end()),
        curve_(cluster_->totals().gpu_capacity) {}

  /// From now on there are gangs.
  Status expect_gangs(std::unique_ptr<placement::Policy> policy) {
    gangs_.emplace(spec_, *cluster_, std::move(policy));
    return gangs_->check();
  }

  Status arrive(const traces::Arrival& arrival, std::ostream* placements) {
    const bool gang = spec_.workload.trace().pods[arrival.pod].gang.has_value();
    const Status done = gang ? arrive_gang(arrival, placements) : arrive_pod(arrival, placements);
    if (done) curve_.add(arrived_, cluster_->totals().gpu_used, meter_.amount());
    return done;
  }

  ReplayResult result() {
    const placement::ClusterTotals& totals = cluster_->totals();
    const auto capacity = static_cast<double>(totals.gpu_capacity);
    const MilliGpu idle = totals.gpu_capacity - totals.gpu_used;
    const double frag = meter_.amount();
    ReplayResult result;
    result.trace = spec_.workload.trace().name;
    result.policy = spec_.policy;
    result.seed = spec_.seed;
    result.arrival = spec_.arrival.label;
    result.nodes = totals.nodes;
    result.gpus = totals.gpus;
    result.pods_arrived = arrived_pods_;
    result.pods_placed = placed_;
    result.pods_failed = arrived_pods_ - placed_;
    result.allocation_pct = round_hundredths(100 * static_cast<double>(totals.gpu_used) / capacity);
    if (idle > 0) result.frag_pct_of_idle = round_hundredths(100 * frag / static_cast<double>(idle));
    result.frag_pct_of_capacity = round_hundredths(100 * frag / capacity);
    result.topology = topology_.means();
    if (gangs_) result.gangs = gangs_->figures();
    result.curve = curve_.rows();
    return result;
  }

 private:
  using Quality = std::optional<placement::PlacementQuality>;

  PodRequest& request_of(std::uint32_t pod) { return requests_[spec_.workload.request_of(pod)]; }

  void count_arrived(const PodRequest& request) {
    ++arrived_pods_;
    if (request.gpus > 0) arrived_ += request.gpus * request.gpu_milli;
  }

  Result<Quality> commit(const std::string& name, const PodRequest& request, const placement::Placed& placed) {
    const auto committed = engine_.commit(request, placed);
    if (!committed) return Error{fmt::format("pod {}: {}", name, committed.message())};
    ++placed_;
    return topology_.add(*cluster_, placed);
  }

  Status arrive_pod(const traces::Arrival& arrival, std::ostream* placements) {
    PodRequest& request = request_of(arrival.pod);
    request.name = arrival.name;
    const placement::Decision decision = engine_.plan(request);
    Quality quality;
    if (const auto* placed = std::get_if<placement::Placed>(&decision)) {
      const auto committed = commit(arrival.name, request, *placed);
      if (!committed) return committed.error();
      quality = *committed;
    }
    if (placements != nullptr) write_placement(*placements, arrival.name, *cluster_, decision, quality);
    count_arrived(request);
    return ok_status();
  }

  /// Its members take their places in the order that was foreseen, and are listed in that of the trace.
  Status arrive_gang(const traces::Arrival& arrival, std::ostream* placements) {
    const traces::Trace& trace = spec_.workload.trace();
    const traces::GangRecord& gang = trace.gangs[*trace.pods[arrival.pod].gang];
    const placement::GangDecision decision = gangs_->plan(arrival);
    std::vector<std::pair<placement::Decision, Quality>> places(gang.size());
    const auto* rejected = std::get_if<placement::GangRejected>(&decision);
    if (const auto* plan = std::get_if<placement::GangPlan>(&decision)) {
      for (const placement::GangMember& member : plan->members) {
        const std::uint32_t pod = gang.roles[member.role].first + member.index;
        const placement::Placed placed{member.node, member.devices, 0};
        const auto committed = commit(traces::clone_name(trace.pods[pod].name, arrival.clone), request_of(pod), placed);
        if (!committed) return committed.error();
        places[pod - gang.first()] = std::pair(placement::Decision(placed), *committed);
      }
    }
    for (std::uint32_t i = 0; i < gang.size(); ++i) {
      const std::uint32_t pod = gang.first() + i;
      count_arrived(request_of(pod));
      if (placements == nullptr) continue;
      const std::string name = traces::clone_name(trace.pods[pod].name, arrival.clone);
      if (rejected != nullptr) {
        write_failed(*placements, name, placement::reason_name(rejected->reason));
      } else {
        write_placement(*placements, name, *cluster_, places[i].first, places[i].second);
      }
    }
    return ok_status();
  }

  const ReplaySpec& spec_;
  std::unique_ptr<ClusterState> cluster_;
  Engine engine_;
  FragmentationMeter meter_;
  TopologyMeter topology_;
  std::optional<GangPlacer> gangs_;
  std::vector<PodRequest> requests_;  ///< by shape; the name changes with each arrival
  CurveBuilder curve_;
  MilliGpu arrived_ = 0;
  std::int64_t arrived_pods_ = 0;
  std::int64_t placed_ = 0;
};

double seconds_between(Nanoseconds from, Nanoseconds to) {
  return static_cast<double>(to - from) / kSecond;
}

}  // namespace

Result<ReplayResult> replay(const ReplaySpec& spec, const ReplayHooks& hooks) {
  const SteadyClock clock;
  const Nanoseconds started = clock.now();
  auto cluster = kube::build_cluster(spec.cluster, spec.ranks, spec.seed);
  if (!cluster) return cluster.error();
  const MilliGpu capacity = (*cluster)->totals().gpu_capacity;
  if (capacity == 0) return Error{"the cluster has no GPU; allowed: a cluster with at least one node with GPUs"};
  const auto arrivals = make_arrivals(spec.arrival, spec.workload.trace(), capacity, spec.seed);
  if (!arrivals) return arrivals.error();
  const placement::TypicalPods typical(spec.workload.classes(), **cluster);
  auto policy = placement::make_policy(spec.policy, typical);
  if (!policy) return policy.error();
  Run run(spec, *std::move(cluster), *std::move(policy), typical);
  if (!spec.workload.trace().gangs.empty()) {
    auto of_gangs = placement::make_policy(spec.policy, typical);
    if (!of_gangs) return of_gangs.error();
    if (const Status known = run.expect_gangs(*std::move(of_gangs)); !known) return known.error();
  }
  const Nanoseconds prepared = clock.now();

  std::uint64_t done = 0;
  for (const traces::Arrival& arrival : *arrivals) {
    if (const Status status = run.arrive(arrival, hooks.placements); !status) return status.error();
    if (hooks.on_progress) hooks.on_progress(++done, arrivals->size());
  }
  if (hooks.times != nullptr) {
    hooks.times->prepare = seconds_between(started, prepared);
    hooks.times->replay = seconds_between(prepared, clock.now());
  }
  return run.result();
}

}  // namespace mortise::sim
