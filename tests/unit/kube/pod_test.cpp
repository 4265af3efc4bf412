#include "scheduler/kube/objects/pod.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace mortise::kube {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(ParsePod, ReadsTheFieldsWeUse) {
  const auto pod = parse_pod(R"({
    "apiVersion": "v1", "kind": "Pod",
    "metadata": {"namespace": "ml", "name": "train-0", "uid": "u-1", "deletionTimestamp": "2025-01-01T00:00:00Z",
                 "labels": {"app": "train"}, "annotations": {"a": "b"}, "managedFields": [{}]},
    "spec": {"nodeName": "n1", "nodeSelector": {"zone": "z1"}, "overhead": {"cpu": "250m"},
             "resources": {"requests": {"cpu": 4}},
             "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}],
             "containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": 1024},
                                                         "limits": {"nvidia.com/gpu": "2"}}}]},
    "status": {"phase": "Running", "conditions": [{"type": "DisruptionTarget", "status": "True",
                                                   "reason": "EvictionByEvictionAPI"}]}})");
  ASSERT_TRUE(pod.ok()) << pod.message();
  EXPECT_FALSE(pod->preempted);  // somebody else has evicted it
  EXPECT_EQ(pod->key(), "ml/train-0");
  EXPECT_EQ(pod->uid, "u-1");
  EXPECT_TRUE(pod->deleting);
  EXPECT_EQ(pod->node_name, "n1");
  EXPECT_EQ(pod->phase, "Running");
  EXPECT_FALSE(pod->terminal());
  EXPECT_THAT(pod->labels, ElementsAre(Pair("app", "train")));
  EXPECT_THAT(pod->annotations, ElementsAre(Pair("a", "b")));
  EXPECT_THAT(pod->node_selector, ElementsAre(Pair("zone", "z1")));
  EXPECT_THAT(pod->overhead, ElementsAre(Pair("cpu", "250m")));
  EXPECT_THAT(pod->requests, ElementsAre(Pair("cpu", "4")));
  ASSERT_EQ(pod->containers.size(), 3U);
  EXPECT_EQ(pod->containers[0].kind, placement::ContainerKind::kInit);
  EXPECT_EQ(pod->containers[1].kind, placement::ContainerKind::kSidecar);
  EXPECT_EQ(pod->containers[2].kind, placement::ContainerKind::kApp);
  EXPECT_THAT(pod->containers[2].requests, ElementsAre(Pair("cpu", "1"), Pair("memory", "1024")));
  EXPECT_THAT(pod->containers[2].limits, ElementsAre(Pair("nvidia.com/gpu", "2")));
}

TEST(ParsePod, ReadsWhatASchedulerNeedsToKnow) {
  const auto pod = parse_pod(R"({
    "metadata": {"name": "train-0", "resourceVersion": "812",
                 "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "u-2"},
                                     {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u-3",
                                      "controller": true, "blockOwnerDeletion": true}]},
    "spec": {"schedulerName": "gpu-scheduler", "priority": -10, "preemptionPolicy": "Never",
             "schedulingGroup": {"podGroupName": "train"},
             "workloadRef": {"name": "w", "podGroup": "workers", "podGroupReplicaKey": "2"}},
    "status": {"nominatedNodeName": "n2", "startTime": "2026-01-02T03:04:05Z",
               "conditions": [{"type": "Ready", "status": "False"},
                              {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                               "message": "0/3 nodes are available"}]}})");
  ASSERT_TRUE(pod.ok()) << pod.message();
  EXPECT_EQ(pod->resource_version, "812");
  ASSERT_EQ(pod->owners.size(), 2U);
  EXPECT_EQ(pod->owners[0].kind, "ConfigMap");
  EXPECT_FALSE(pod->owners[0].controller);
  EXPECT_EQ(pod->owners[1].api_version, "batch/v1");
  EXPECT_EQ(pod->owners[1].kind, "Job");
  EXPECT_EQ(pod->owners[1].name, "train");
  EXPECT_EQ(pod->owners[1].uid, "u-3");
  EXPECT_TRUE(pod->owners[1].controller);
  EXPECT_EQ(pod->scheduler_name, "gpu-scheduler");
  EXPECT_EQ(pod->priority, -10);
  EXPECT_EQ(pod->preemption_policy, "Never");
  EXPECT_EQ(pod->pod_group, "train");
  EXPECT_EQ(pod->workload.name, "w");
  EXPECT_EQ(pod->workload.pod_group, "workers");
  EXPECT_EQ(pod->workload.replica_key, "2");
  EXPECT_EQ(pod->nominated_node_name, "n2");
  EXPECT_EQ(pod->start_time, "2026-01-02T03:04:05Z");
  EXPECT_EQ(pod->scheduled.status, "False");
  EXPECT_EQ(pod->scheduled.reason, "Unschedulable");
  EXPECT_EQ(pod->scheduled.message, "0/3 nodes are available");
}

TEST(ParsePod, APriorityIsAWholeNumberOf32Bits) {
  const auto with = [](const std::string& value) { return parse_pod(R"({"spec": {"priority": )" + value + "}}"); };
  EXPECT_EQ(with("2147483647")->priority, 2147483647);
  EXPECT_EQ(with("-2147483648")->priority, -2147483648);
  EXPECT_EQ(with("null")->priority, 0);
  for (const char* value : {"2147483648", "-2147483649", "18446744073709551615", "1.5", "\"1\"", "true"}) {
    const auto pod = with(value);
    ASSERT_FALSE(pod.ok()) << value;
    EXPECT_THAT(pod.message(), HasSubstr("spec.priority must be a whole number of at most 32 bits")) << value;
  }
}

TEST(ParsePod, MissingAndNullFieldsAreEmpty) {
  for (const char* text :
       {R"({})", R"({"metadata": null, "spec": null, "status": null})",
        R"({"metadata": {"name": null, "labels": null, "annotations": null, "deletionTimestamp": null},
            "spec": {"containers": null, "initContainers": null, "nodeSelector": null, "overhead": null,
                     "nodeName": null, "resources": null},
            "status": {"phase": null}})"}) {
    const auto pod = parse_pod(text);
    ASSERT_TRUE(pod.ok()) << pod.message();
    EXPECT_EQ(pod->key(), "/");
    EXPECT_FALSE(pod->deleting);
    EXPECT_TRUE(pod->containers.empty());
  }
  const auto pod = parse_pod(R"({"metadata": {"labels": {"a": null}}, "spec": {"containers": [{"resources": null},
    {"resources": {"limits": {"nvidia.com/gpu": null}}}, null]}})");
  ASSERT_TRUE(pod.ok()) << pod.message();
  EXPECT_THAT(pod->labels, ElementsAre(Pair("a", "")));
  ASSERT_EQ(pod->containers.size(), 3U);
  EXPECT_THAT(pod->containers[1].limits, ElementsAre(Pair("nvidia.com/gpu", "0")));
}

TEST(ParsePod, SucceededAndFailedPodsAreTerminal) {
  EXPECT_TRUE(parse_pod(R"({"status": {"phase": "Succeeded"}})")->terminal());
  EXPECT_TRUE(parse_pod(R"({"status": {"phase": "Failed"}})")->terminal());
  EXPECT_FALSE(parse_pod(R"({"status": {"phase": "Unknown"}})")->terminal());
  EXPECT_FALSE(parse_pod(R"({"metadata": {"deletionTimestamp": "2025-01-01T00:00:00Z"}})")->terminal());
}

TEST(ParsePod, WrongTypeIsNamedWithItsPath) {
  const auto message = [](const char* text) {
    const auto pod = parse_pod(text);
    return pod.ok() ? std::string("accepted") : pod.message();
  };
  EXPECT_EQ(message("[]"), "the document must be an object, not of type array");
  EXPECT_EQ(message(R"({"metadata": "x"})"), "metadata must be an object, not of type string");
  EXPECT_EQ(message(R"({"metadata": {"name": 5}})"), "metadata.name must be a string, not the number 5");
  EXPECT_EQ(message(R"({"metadata": {"labels": {"a": true}}})"),
            "metadata.labels[\"a\"] must be a string, not of type boolean");
  EXPECT_EQ(message(R"({"spec": {"containers": {}}})"), "spec.containers must be an array, not of type object");
  EXPECT_EQ(message(R"({"spec": {"containers": [{}, {"name": []}]}})"),
            "spec.containers[1].name must be a string, not of type array");
  EXPECT_EQ(message(R"({"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": [1]}}}]}})"),
            "spec.containers[0].resources.limits[\"nvidia.com/gpu\"] must be a string, not of type array");
}

TEST(ParsePod, BrokenJsonIsNamedWithItsLine) {
  EXPECT_THAT(parse_pod("{\n  \"metadata\": {").message(),
              HasSubstr("line 2: not valid JSON: the text ends too early"));
  EXPECT_THAT(parse_pod("").message(), HasSubstr("line 1: not valid JSON: the text ends too early"));
  EXPECT_THAT(parse_pod("{\n\"a\": x}").message(), HasSubstr("line 2: not valid JSON: unexpected text at column 6"));
  EXPECT_THAT(parse_pod("{} {}").message(), HasSubstr("line 1: not valid JSON: unexpected text at column 4"));
  EXPECT_THAT(parse_pod("{\"a\":\n1e999}").message(), HasSubstr("line 2: not valid JSON: a number is out of range"));
  EXPECT_THAT(parse_pod("{\"metadata\": {\"name\": \"\xFF\"}}").message(), HasSubstr("not valid JSON"));
}

TEST(ParsePod, DeepNestingIsNoTrouble) {
  const std::string deep(9'000, '[');
  EXPECT_FALSE(parse_pod(deep).ok());
  EXPECT_TRUE(parse_pod("{\"x\": " + deep + std::string(9'000, ']') + "}").ok());
}

}  // namespace
}  // namespace mortise::kube
