#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "scheduler/extender/gang_feed.h"
#include "tests/unit/extender/test_cluster.h"

namespace mortise::extender {

/// Pods and group objects come, and kube-scheduler asks about members on the nodes of a TestCluster.
class GangFeedTest : public testing::Test {
 protected:
  GangFeedTest() {
    for (const char* name : {"big-a", "big-b", "small", "plain"}) {
      domains_.set_node(*test_.cluster().find_node(name), std::vector<placement::Label>{});
    }
    test_.handlers().place_gangs(gangs_, feed_);
  }

  static kube::Pod pod(const std::string& name, int gpus) {
    kube::Pod made;
    made.ns = "default";
    made.name = made.uid = name;
    made.phase = "Pending";
    kube::Container container;
    container.name = "main";
    if (gpus > 0) container.limits = {{"nvidia.com/gpu", std::to_string(gpus)}};
    made.containers.push_back(container);
    return made;
  }
  /// A member by our own annotations.
  static kube::Pod member(const std::string& gang, int number, int gpus, int minimum) {
    kube::Pod made = pod(gang + "-" + std::to_string(number), gpus);
    made.annotations = {{"mortise.dev/gang-name", gang}, {"mortise.dev/gang-min-member", std::to_string(minimum)}};
    return made;
  }
  static kube::Pod of_pod_group(const std::string& name, const std::string& group) {
    kube::Pod made = pod(name, 1);
    made.labels = {{"scheduling.x-k8s.io/pod-group", group}};
    return made;
  }
  static kube::GroupObject pod_group(const std::string& name, int minimum) {
    kube::GroupObject made;
    made.kind = kube::GroupKind::kPodGroup;
    made.ns = "default";
    made.name = name;
    made.minimum = minimum;
    return made;
  }
  /// The one gang there is.
  GangPhase phase() const { return gangs_.phase(gangs_.gangs().begin()->second); }
  FilterResult filter(const kube::Pod& pod) {
    PodQuestion question = ask(pod.uid, 0, {"big-a", "big-b", "small", "plain"});
    question.pod = *kube::pod_request(pod);
    question.object = pod;
    return test_.handlers().filter(question).result;
  }
  std::string bind(const kube::Pod& pod, const std::string& node) {
    return test_.handlers().bind({pod.name, pod.ns, pod.uid, node});
  }

  TestCluster test_;
  placement::ClusterState& state_ = const_cast<placement::ClusterState&>(test_.cluster());
  placement::Domains domains_{state_};
  std::unique_ptr<placement::Policy> policy_ = *placement::make_policy("first-fit", placement::TypicalPods());
  Gangs gangs_{test_.bookings(), state_, domains_, *policy_, 1, test_.clock()};
  GangFeed feed_{gangs_};
};

}  // namespace mortise::extender
