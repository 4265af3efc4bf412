#include "bench/churn.h"

#include <cstdio>
#include <cstdlib>
#include <utility>
#include <variant>

#include "scheduler/base/rng.h"
#include "scheduler/placement/fragmentation.h"
#include "scheduler/placement/policy.h"
#include "traces/synth.h"
#include "traces/workload.h"

namespace mortise::bench {

namespace {
constexpr std::uint64_t kSeed = 42;
constexpr std::size_t kPods = 10'000;
constexpr std::int32_t kPodsPerNode = 1001;  // as in the published study
constexpr double kLoad = 0.85;               // sets the times only, which nothing here reads

template <class T>
T need(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "bench: %s\n", result.message().c_str());
    std::exit(1);
  }
  return *std::move(result);
}

placement::NodeSpec node_spec(const traces::NodeRecord& record) {
  placement::NodeSpec spec;
  spec.name = record.name;
  spec.cpu = record.cpu;
  spec.memory = record.memory;
  spec.pods = kPodsPerNode;
  spec.gpus = record.gpus;
  spec.model = record.model;
  return spec;
}

placement::PodRequest pod_request(const traces::PodRecord& record) {
  placement::PodRequest pod;
  pod.name = record.name;
  pod.cpu = record.cpu;
  pod.memory = record.memory;
  pod.gpus = record.gpus;
  if (record.gpus > 0) pod.gpu_milli = record.gpu_milli;
  pod.models = traces::split_models(record.gpu_spec);
  return pod;
}

placement::PodClass pod_class(const traces::PodRecord& record) {
  return {record.cpu, record.gpu_milli, record.gpus, record.gpu_spec, traces::split_models(record.gpu_spec)};
}
}  // namespace

Churn::Churn(std::size_t nodes, const std::string& policy) {
  const traces::SynthProfile& profile = *need(traces::find_profile("openb"));
  for (const traces::NodeRecord& record : traces::synth_nodes(profile, nodes, kSeed)) {
    need(cluster_.add_node(node_spec(record), mix64(hash_text(record.name))));
  }
  const traces::Trace trace = need(traces::synth_pods(profile, kPods, cluster_.totals().gpu_capacity, kLoad, kSeed));
  std::vector<placement::PodClass> classes;
  for (const traces::PodRecord& record : trace.pods) {
    pods_.push_back(pod_request(record));
    classes.push_back(pod_class(record));
  }
  const placement::TypicalPods typical(classes, cluster_);
  engine_ = std::make_unique<placement::Engine>(cluster_, need(placement::make_policy(policy, typical)), kSeed);
  constexpr double kHalf = 0.5;
  while (gpu_share_used() < kHalf) place_next();
}

double Churn::gpu_share_used() const {
  return static_cast<double>(cluster_.totals().gpu_used) / static_cast<double>(cluster_.totals().gpu_capacity);
}

void Churn::place_next() {
  const placement::PodRequest& pod = pods_[next_];
  next_ = (next_ + 1) % pods_.size();
  ++steps_;
  const placement::Decision decision = engine_->plan(pod);
  if (const auto* placed = std::get_if<placement::Placed>(&decision)) {
    held_.push_back(need(engine_->commit(pod, *placed)));
    ++placed_;
  }
}

void Churn::step() {
  place_next();
  while (!held_.empty() && 2 * cluster_.totals().gpu_used > cluster_.totals().gpu_capacity) {
    need(cluster_.release(held_.front()));
    held_.pop_front();
  }
}

}  // namespace mortise::bench
