#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/base/clock.h"
#include "scheduler/extender/cluster_view.h"
#include "scheduler/extender/handlers.h"
#include "scheduler/extender/metrics.h"
#include "scheduler/extender/readiness.h"
#include "scheduler/extender/service.h"
#include "scheduler/placement/cluster_state.h"
#include "scheduler/placement/engine.h"
#include "scheduler/placement/fragmentation.h"
#include "scheduler/placement/policy.h"

namespace mortise::extender {

/// A small cluster with everything above it up to the service. Ranks are in the order given, so `first-fit` takes the
/// first node that fits.
///   big-a, big-b: 8 GPUs (A100); small: 2 GPUs (T4); plain: none. Each 64 CPUs, 256 GiB, 110 pods.
class TestCluster {
 public:
  explicit TestCluster(std::string_view policy = "first-fit", Nanoseconds reserve_for = 0) {
    add("big-a", 8, "A100");
    add("big-b", 8, "A100");
    add("small", 2, "T4");
    add("plain", 0, "");
    auto made = placement::make_policy(policy, typical_);
    EXPECT_TRUE(made.ok());
    engine_ = std::make_unique<placement::Engine>(cluster_, *std::move(made), 1);
    meter_ = std::make_unique<placement::FragmentationMeter>(cluster_, typical_);
    handlers_ = std::make_unique<Handlers>(*engine_, bookings_, clock_, reserve_for);
    service_ = std::make_unique<Service>(*handlers_, cluster_, *meter_, metrics_, clock_);
  }

  void add(const std::string& name, std::int32_t gpus, const std::string& model) {
    add({name, 64'000, 256 * 1024 * kMiB, 110, gpus, model});
  }
  void add(const placement::NodeSpec& spec) { EXPECT_TRUE(cluster_.add_node(spec, cluster_.node_count()).ok()); }

  void change(const placement::NodeSpec& spec) {
    EXPECT_TRUE(cluster_.update_node(*cluster_.find_node(spec.name), spec).ok());
  }

  void remove(const std::string& node) { EXPECT_TRUE(cluster_.remove_node(*cluster_.find_node(node)).ok()); }

  /// Fills the lowest GPUs of a node that are free.
  void occupy(const std::string& node, std::int32_t gpus) {
    placement::PodRequest pod;
    pod.name = "filler";
    pod.gpus = gpus;
    const NodeId id = *cluster_.find_node(node);
    const placement::Decision decision = engine_->plan(pod, {&id, 1});
    ASSERT_TRUE(std::holds_alternative<placement::Placed>(decision));
    ASSERT_TRUE(engine_->commit(pod, std::get<placement::Placed>(decision)).ok());
  }

  /// Puts a pod with a UID on a node, on the lowest GPUs that are free. It started `running` ago.
  void hold(const std::string& uid, const std::string& node, std::int32_t gpus, std::int32_t priority,
            Nanoseconds running = 0) {
    placement::PodRequest pod;
    pod.ns = "default";
    pod.name = "pod-" + uid;
    pod.uid = uid;
    pod.gpus = gpus;
    pod.priority = priority;
    const NodeId id = *cluster_.find_node(node);
    const placement::Decision decision = engine_->plan(pod, {&id, 1});
    ASSERT_TRUE(std::holds_alternative<placement::Placed>(decision));
    bookings_.bound(pod, node, std::get<placement::Placed>(decision).devices);
    bookings_.started(uid, clock_.since_1970() - running);
  }

  std::int64_t free_gpus(const std::string& node) const {
    return cluster_.state_of(*cluster_.find_node(node)).whole_free();
  }

  ManualClock& clock() { return clock_; }
  Bookings& bookings() { return bookings_; }
  placement::Engine& engine() { return *engine_; }
  Handlers& handlers() { return *handlers_; }
  Service& service() { return *service_; }
  const placement::ClusterState& cluster() const { return cluster_; }
  Metrics& metrics() { return metrics_; }
  ClusterView::Parts view_parts() { return {*service_, cluster_, *engine_, *meter_, *handlers_, metrics_, readiness_}; }
  Readiness& readiness() { return readiness_; }

 private:
  ManualClock clock_;
  placement::TypicalPods typical_;
  placement::ClusterState cluster_;
  Bookings bookings_{cluster_};
  std::unique_ptr<placement::Engine> engine_;
  std::unique_ptr<placement::FragmentationMeter> meter_;
  std::unique_ptr<Handlers> handlers_;
  Metrics metrics_;
  Readiness readiness_;
  std::unique_ptr<Service> service_;
};

/// A question as the codec would give it. The names must outlive it.
inline PodQuestion ask(const std::string& uid, std::int32_t gpus, const std::vector<std::string_view>& nodes) {
  PodQuestion question;
  question.pod.ns = "default";
  question.pod.name = "pod-" + uid;
  question.pod.uid = uid;
  question.pod.gpus = gpus;
  question.args.has_names = true;
  for (const std::string_view name : nodes) question.args.nodes.push_back({name, {}});
  return question;
}

/// The names with one verdict, in the order of the answer.
inline std::vector<std::string> with_verdict(const FilterResult& result, Verdict verdict) {
  std::vector<std::string> names;
  for (const NodeVerdict& node : result.nodes) {
    if (node.verdict == verdict) names.emplace_back(node.name);
  }
  return names;
}

inline std::string reason_of(const FilterResult& result, std::string_view name) {
  for (const NodeVerdict& node : result.nodes) {
    if (node.name == name) return node.verdict == Verdict::kPassed ? "passed" : result.reasons[node.reason];
  }
  return "not in the answer";
}

}  // namespace mortise::extender
