// Each convention from hand-made pods and group objects. The keys and sizes follow the documentation of each project.
#include "scheduler/kube/objects/gang.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/tree.h"
#include "tests/unit/kube/gang_text.h"

namespace mortise::kube {
namespace {

using testing::HasSubstr;

using Pairs = std::initializer_list<std::pair<std::string, std::string>>;

std::string members(const Pairs& pairs) {
  std::string text;
  for (const auto& [key, value] : pairs) {
    std::string escaped;
    for (const char c : value) {
      if (c == '"' || c == '\\') escaped += '\\';
      escaped += c == '\n' ? std::string("\\n") : std::string(1, c);
    }
    text.append(text.empty() ? "\"" : ", \"").append(key).append("\": \"").append(escaped).append("\"");
  }
  return "{" + text + "}";
}

std::string pod_of(const Pairs& labels, const Pairs& annotations, const std::string& more = "{}",
                   const std::string& owner = "") {
  return R"({"metadata": {"name": "p", "namespace": "ml", "labels": )" + members(labels) + R"(, "annotations": )" +
         members(annotations) + R"(, "ownerReferences": [)" + owner + R"(]}, "spec": )" + more + "}";
}

std::string owned_by(const std::string& api_version, const std::string& kind, const std::string& name) {
  return R"({"apiVersion": ")" + api_version + R"(", "kind": ")" + kind + R"(", "name": ")" + name +
         R"(", "controller": true})";
}

std::string object_of(const std::string& api_version, const std::string& kind, const std::string& spec,
                      const std::string& more_metadata = "") {
  return R"({"apiVersion": ")" + api_version + R"(", "kind": ")" + kind +
         R"(", "metadata": {"name": "g", "namespace": "ml")" + more_metadata + R"(}, "spec": )" + spec + "}";
}

/// One pod's gang as text.
std::string told(const std::string& pod, const std::vector<std::string>& objects = {}) {
  const auto lines = test::recognised({pod}, objects);
  const std::string& line = lines.back();
  return lines.size() == 1 ? line.substr(std::string("1 x ").size()) : "more than one line: " + lines.front();
}

const std::string kSchedulerPluginsGroup = object_of("scheduling.x-k8s.io/v1alpha1", "PodGroup", R"({"minMember": 3})");
const std::string kVolcanoGroup = object_of("scheduling.volcano.sh/v1beta1", "PodGroup", R"({"minMember": 4})");

TEST(Gang, APodThatSaysNothingIsNone) {
  EXPECT_EQ(told(pod_of({}, {})), "single");
  EXPECT_EQ(told(pod_of({{"app", "x"}}, {{"mortise.dev/topology-required", "rack"}})), "single");
}

TEST(Gang, OwnAnnotations) {
  const Pairs both = {{"mortise.dev/gang-name", "g"}, {"mortise.dev/gang-min-member", "4"}};
  EXPECT_EQ(told(pod_of({}, both)), "mortise:ml/g 4 of any");
  EXPECT_EQ(told(R"({"metadata": {"name": "p", "annotations": )" + members(both) + "}}"), "mortise:default/g 4 of any");
  EXPECT_EQ(told(pod_of({}, {{"mortise.dev/gang-name", "g"}, {"mortise.dev/gang-min-member", "1"}})), "single");
}

TEST(Gang, MalformedOwnAnnotationsAreToldToThatPod) {
  const auto with = [](const std::string& minimum) {
    return told(pod_of({}, {{"mortise.dev/gang-name", "g"}, {"mortise.dev/gang-min-member", minimum}}));
  };
  for (const std::string bad : {"", "0", "-1", "+2", " 2", "2 ", "2.0", "two", "1000001", "99999999999999999999"}) {
    EXPECT_EQ(with(bad), "error: gang by mortise: annotation mortise.dev/gang-min-member is \"" + bad +
                             "\"; allowed: a whole number from 1 to 1000000");
  }
  EXPECT_EQ(with("1000000"), "mortise:ml/g 1000000 of any");
  EXPECT_THAT(told(pod_of({}, {{"mortise.dev/gang-name", ""}})), HasSubstr("gang-name is empty"));
  EXPECT_THAT(told(pod_of({}, {{"mortise.dev/gang-min-member", "2"}})), HasSubstr("without mortise.dev/gang-name"));
  EXPECT_THAT(told(pod_of({}, {{"mortise.dev/gang-name", "g"}})), HasSubstr("gang-min-member is missing"));
}

// The size of what made the pods: 2 * min(3, 2) + 1 * 4 for the JobSet.
TEST(Gang, OwnNameAloneTakesTheSizeOfTheJobThatMadeThePod) {
  const Pairs name = {{"mortise.dev/gang-name", "run"}};
  const std::string job = object_of("batch/v1", "Job", R"({"parallelism": 8, "completions": 6})");
  const std::string by_job = pod_of({}, name, "{}", owned_by("batch/v1", "Job", "g"));
  EXPECT_EQ(told(by_job, {job}), "mortise:ml/run 6 of 6");
  EXPECT_EQ(told(by_job), "mortise:ml/run waits for its group object Job ml/g");

  const std::string replicated = R"("replicatedJobs": [
      {"name": "a", "replicas": 2, "template": {"spec": {"parallelism": 3, "completions": 2}}},
      {"name": "b", "template": {"spec": {"parallelism": 4}}}])";
  const std::string by_set =
      pod_of({{"jobset.sigs.k8s.io/jobset-name", "g"}, {"jobset.sigs.k8s.io/replicatedjob-name", "b"}}, name, "{}",
             owned_by("batch/v1", "Job", "g-b-0"));
  EXPECT_EQ(told(by_set, {object_of("jobset.x-k8s.io/v1alpha2", "JobSet", "{" + replicated + "}")}),
            "mortise:ml/run 8 of 8 [a 4, b 4] | b");
  // In order: b's pods come when a's run, so the two cannot wait for each other.
  EXPECT_EQ(told(by_set, {object_of("jobset.x-k8s.io/v1alpha2", "JobSet",
                                    R"({"startupPolicy": {"startupPolicyOrder": "InOrder"}, )" + replicated + "}")}),
            "mortise:ml/run/b 4 of 4 [b 4] | b");

  const std::string ray = object_of("ray.io/v1", "RayCluster",
                                    R"({"workerGroupSpecs": [{"groupName": "w", "replicas": 2, "minReplicas": 0}]})");
  EXPECT_EQ(told(pod_of({{"ray.io/group", "w"}}, name, "{}", owned_by("ray.io/v1", "RayCluster", "g")), {ray}),
            "mortise:ml/run 3 of 3 [headgroup 1, w 2] | w");
}

TEST(Gang, LabelsOfJobsJobSetsAndRayAloneMakeNone) {
  const std::vector<std::string> objects = {
      object_of("batch/v1", "Job", R"({"parallelism": 8})"),
      object_of("jobset.x-k8s.io/v1alpha2", "JobSet",
                R"({"replicatedJobs": [{"name": "a", "template": {"spec": {"parallelism": 4}}}]})"),
      object_of("ray.io/v1", "RayCluster", R"({"workerGroupSpecs": [{"groupName": "w", "replicas": 2}]})")};
  EXPECT_EQ(told(pod_of({{"batch.kubernetes.io/job-name", "g"}}, {}, "{}", owned_by("batch/v1", "Job", "g")), objects),
            "single");
  EXPECT_EQ(told(pod_of({{"jobset.sigs.k8s.io/jobset-name", "g"}}, {}), objects), "single");
  EXPECT_EQ(told(pod_of({{"ray.io/cluster", "g"}, {"ray.io/group", "w"}}, {}), objects), "single");
  EXPECT_EQ(told(pod_of({{"training.kubeflow.org/job-name", "g"}}, {})), "single");
}

TEST(Gang, NativePodGroup) {
  const std::string pod = pod_of({}, {}, R"({"schedulingGroup": {"podGroupName": "g"}})");
  const auto with = [&](const std::string& spec) {
    return told(pod, {object_of("scheduling.k8s.io/v1alpha2", "PodGroup", spec)});
  };
  EXPECT_EQ(told(pod), "native-pod-group:ml/g waits for its group object PodGroup ml/g");
  EXPECT_EQ(with(R"({"schedulingPolicy": {"gang": {"minCount": 5}}})"), "native-pod-group:ml/g 5 of any");
  EXPECT_EQ(with(R"({"schedulingPolicy": {"basic": {}}})"), "single");
  EXPECT_EQ(with(R"({"schedulingPolicy": {"gang": {"minCount": 2}},
                     "schedulingConstraints": {"topology": [{"key": "topology.kubernetes.io/rack"}]}})"),
            "native-pod-group:ml/g 2 of any required topology.kubernetes.io/rack");
  EXPECT_EQ(with(R"({"schedulingPolicy": {"basic": {}},
                     "schedulingConstraints": {"topology": [{"key": "rack"}]}})"),
            "native-pod-group:ml/g 1 of any required rack");
  EXPECT_EQ(with("{}"),
            "error: gang by native-pod-group: its PodGroup ml/g: spec.schedulingPolicy has neither gang nor basic");
  EXPECT_THAT(with(R"({"schedulingPolicy": {"gang": {}}})"),
              HasSubstr("spec.schedulingPolicy.gang.minCount is missing"));
}

TEST(Gang, NativeWorkloadOf135) {
  const auto pod = [](const std::string& reference) { return pod_of({}, {}, R"({"workloadRef": )" + reference + "}"); };
  const std::string workload = object_of("scheduling.k8s.io/v1alpha1", "Workload",
                                         R"({"podGroups": [{"name": "w", "policy": {"gang": {"minCount": 3}}},
                                                           {"name": "d", "policy": {"basic": {}}}]})");
  EXPECT_EQ(told(pod(R"({"name": "g", "podGroup": "w", "podGroupReplicaKey": "1"})"), {workload}),
            "native-workload:ml/g/w/1 3 of any");
  EXPECT_EQ(told(pod(R"({"name": "g", "podGroup": "d"})"), {workload}), "single");
  EXPECT_EQ(told(pod(R"({"name": "g", "podGroup": "w"})")),
            "native-workload:ml/g/w/ waits for its group object Workload ml/g");
  EXPECT_EQ(told(pod(R"({"name": "g", "podGroup": "x"})"), {workload}),
            "native-workload:ml/g/x/ waits for its group object Workload ml/g to have pod group \"x\"");
  EXPECT_THAT(told(pod(R"({"name": "g"})"), {workload}), HasSubstr("names no podGroup"));
}

TEST(Gang, SchedulerPlugins) {
  const std::string pod = pod_of({{"scheduling.x-k8s.io/pod-group", "g"}}, {});
  EXPECT_EQ(told(pod, {kSchedulerPluginsGroup}), "scheduler-plugins:ml/g 3 of any");
  EXPECT_EQ(told(pod), "scheduler-plugins:ml/g waits for its group object PodGroup ml/g");
  EXPECT_EQ(told(pod_of({{"pod-group.scheduling.sigs.k8s.io", "g"}}, {}),
                 {object_of("scheduling.sigs.k8s.io/v1alpha1", "PodGroup", R"({"minMember": 2})")}),
            "scheduler-plugins:ml/g 2 of any");
  // A group of another scheduler, though of the same name, is not theirs.
  EXPECT_THAT(told(pod, {kVolcanoGroup}), HasSubstr("waits for"));
  EXPECT_EQ(told(pod_of({{"scheduling.x-k8s.io/pod-group", ""}}, {})), "single");
}

TEST(Gang, LightweightLabelsHaveTheSizeThemselves) {
  EXPECT_EQ(
      told(pod_of({{"pod-group.scheduling.x-k8s.io/name", "g"}, {"pod-group.scheduling.x-k8s.io/min-available", "3"}},
                  {})),
      "lightweight:ml/g 3 of any");
  EXPECT_EQ(told(pod_of({{"pod-group.scheduling.sigs.k8s.io/name", "g"},
                         {"pod-group.scheduling.sigs.k8s.io/min-available", "2"}},
                        {})),
            "lightweight:ml/g 2 of any");
  EXPECT_THAT(
      told(pod_of({{"pod-group.scheduling.x-k8s.io/name", "g"}, {"pod-group.scheduling.x-k8s.io/min-available", "x"}},
                  {})),
      HasSubstr("label pod-group.scheduling.x-k8s.io/min-available is \"x\""));
}

TEST(Gang, Volcano) {
  const auto pod = [](const std::string& key) { return pod_of({}, {{key, "g"}, {"volcano.sh/task-spec", "worker"}}); };
  EXPECT_EQ(told(pod("scheduling.k8s.io/group-name"), {kVolcanoGroup}), "volcano:ml/g 4 of any | worker");
  EXPECT_EQ(told(pod("scheduling.volcano.sh/group-name"), {kVolcanoGroup}), "volcano:ml/g 4 of any | worker");
  EXPECT_THAT(told(pod("scheduling.k8s.io/group-name")), HasSubstr("waits for its group object PodGroup ml/g"));
}

TEST(Gang, Koordinator) {
  const std::string prefix = "gang.scheduling.koordinator.sh/";
  EXPECT_EQ(told(pod_of({}, {{prefix + "name", "g"}, {prefix + "min-available", "3"}})), "koordinator:ml/g 3 of 3");
  EXPECT_EQ(told(pod_of({}, {{prefix + "name", "g"}, {prefix + "min-available", "3"}, {prefix + "total-number", "5"}})),
            "koordinator:ml/g 3 of 5");
  EXPECT_THAT(
      told(pod_of({}, {{prefix + "name", "g"}, {prefix + "min-available", "3"}, {prefix + "total-number", "2"}})),
      HasSubstr("total-number is less than"));
  EXPECT_EQ(told(pod_of({}, {{prefix + "name", "g"}}), {kSchedulerPluginsGroup}), "koordinator:ml/g 3 of 3");
  EXPECT_THAT(told(pod_of({}, {{prefix + "name", "g"}})), HasSubstr("waits for"));
}

TEST(Gang, KoordinatorGangsThatStartTogether) {
  const auto pod = parse_pod(pod_of({}, {{"gang.scheduling.koordinator.sh/name", "a"},
                                         {"gang.scheduling.koordinator.sh/min-available", "2"},
                                         {"gang.scheduling.koordinator.sh/groups", R"(["x/b", "ml/a", "x/b"])"}}));
  const auto gang = recognise_gang(*pod, {});
  ASSERT_TRUE(gang.ok()) << gang.message();
  EXPECT_THAT((*gang)->together, testing::ElementsAre("ml/a", "x/b"));
  for (const std::string bad : {"a", "[1]", R"(["a"])", R"(["/a"])", "{}", "[\"a/\"]"}) {
    EXPECT_THAT(told(pod_of({}, {{"gang.scheduling.koordinator.sh/name", "a"},
                                 {"gang.scheduling.koordinator.sh/min-available", "2"},
                                 {"gang.scheduling.koordinator.sh/groups", bad}})),
                HasSubstr("allowed: a JSON list"));
  }
}

TEST(Gang, Kai) {
  const std::string group = object_of("scheduling.run.ai/v2alpha2", "PodGroup", R"({"minMember": 2})");
  EXPECT_EQ(told(pod_of({}, {{"pod-group-name", "g"}}), {group}), "kai:ml/g 2 of any");
  EXPECT_EQ(told(pod_of({{"pod-group.scheduling.run.ai/name", "g"}}, {}), {group}), "kai:ml/g 2 of any");
  EXPECT_EQ(told(pod_of({}, {{"pod-group-name", "g"}}),
                 {object_of("scheduling.run.ai/v2alpha2", "PodGroup", R"({"minMember": 1})")}),
            "single");
}

TEST(Gang, KaiSubGroupsAskOfTheirOwnMembersOnly) {
  const std::string group = object_of("scheduling.run.ai/v2alpha2", "PodGroup", R"({
      "topologyConstraint": {"topology": "t", "requiredTopologyLevel": "zone"},
      "subGroups": [{"name": "all", "topologyConstraint": {"preferredTopologyLevel": "block"}},
                    {"name": "a", "parent": "all", "minMember": 2, "topologyConstraint": {"requiredTopologyLevel": "rack"}},
                    {"name": "b", "parent": "all", "minMember": 3}]})");
  const auto pod = [](const std::string& sub) {
    return pod_of({{"kai.scheduler/subgroup-name", sub}}, {{"pod-group-name", "g"}});
  };
  EXPECT_EQ(told(pod("a"), {group}),
            "kai:ml/g 5 of any [a 2, b 3] required zone; required rack per a; preferred block per all | a");
  EXPECT_EQ(told(pod("b"), {group}), "kai:ml/g 5 of any [a 2, b 3] required zone; preferred block per all | b");
  EXPECT_THAT(told(pod("c"), {group}), HasSubstr("is \"c\"; its PodGroup has no such sub-group"));
}

TEST(Gang, Kueue) {
  EXPECT_EQ(told(pod_of({{"kueue.x-k8s.io/pod-group-name", "g"}},
                        {{"kueue.x-k8s.io/pod-group-total-count", "4"}, {"kueue.x-k8s.io/role-hash", "ab12"}})),
            "kueue:ml/g 4 of 4 | ab12");
  EXPECT_THAT(told(pod_of({{"kueue.x-k8s.io/pod-group-name", "g"}}, {})), HasSubstr("total-count is missing"));
  // A StatefulSet's second pod is made when the first runs.
  EXPECT_EQ(
      told(pod_of({{"kueue.x-k8s.io/pod-group-name", "g"}}, {{"kueue.x-k8s.io/pod-group-total-count", "4"},
                                                             {"kueue.x-k8s.io/pod-group-fast-admission", "true"}})),
      "single");
}

// A leader with 1 GPU and two workers with 8: three pods, whatever the namespace.
TEST(Gang, Hived) {
  const auto with = [](const std::string& spec) {
    return told(pod_of({}, {{"hivedscheduler.microsoft.com/pod-scheduling-spec", spec}}));
  };
  const std::string group =
      "affinityGroup:\n  name: x/g\n  members:\n  - podNumber: 1\n    leafCellNumber: 1\n  - podNumber: 2\n"
      "    leafCellNumber: 8\n";
  EXPECT_EQ(with("leafCellNumber: 8\n" + group), "hived:x/g 3 of 3 [leaf-cells-1 1, leaf-cells-8 2] | leaf-cells-8");
  EXPECT_EQ(with("leafCellNumber: 8\naffinityGroup: null\n"), "single");
  EXPECT_THAT(with("leafCellNumber: 4\n" + group), HasSubstr("none with the pod's leafCellNumber"));
  EXPECT_THAT(with("affinityGroup: [\n"), HasSubstr("not valid YAML"));
  EXPECT_THAT(with("affinityGroup: 3\n"), HasSubstr("affinityGroup"));
  EXPECT_THAT(with("a: 1\n---\nb: 2\n"), HasSubstr("several documents"));
}

TEST(Gang, Yunikorn) {
  const auto with = [](const std::string& groups) {
    return told(pod_of({{"applicationId", "app-1"}},
                       {{"yunikorn.apache.org/task-group-name", "head"}, {"yunikorn.apache.org/task-groups", groups}}));
  };
  EXPECT_EQ(with(R"([{"name": "head", "minMember": 1, "minResource": {"cpu": 1}}, {"name": "w", "minMember": 4}])"),
            "yunikorn:ml/app-1 5 of any [head 1, w 4] | head");
  EXPECT_THAT(with(R"([{"name": "w", "minMember": 4}])"), HasSubstr("has no task group \"head\""));
  EXPECT_THAT(with(R"([{"name": "head"}])"), HasSubstr("has no minMember"));
  EXPECT_THAT(with("head"), HasSubstr("task-groups"));
  EXPECT_THAT(told(pod_of({}, {{"yunikorn.apache.org/task-group-name", "w"}})), HasSubstr("applicationId is missing"));
}

TEST(Gang, LeaderWorkerSet) {
  const std::string prefix = "leaderworkerset.sigs.k8s.io/";
  const auto pod = [&](const std::string& index, const std::string& revision, const std::string& exclusive = "") {
    const Pairs labels = {{prefix + "name", "g"},
                          {prefix + "group-index", "1"},
                          {prefix + "worker-index", index},
                          {prefix + "template-revision-hash", revision}};
    if (exclusive.empty()) return pod_of(labels, {{prefix + "size", "4"}});
    return pod_of(labels, {{prefix + "size", "4"}, {prefix + "exclusive-topology", exclusive}});
  };
  EXPECT_EQ(told(pod("0", "r1")), "leader-worker-set:ml/g/1/r1 4 of 4 [leader 1, worker 3] | leader");
  EXPECT_EQ(told(pod("3", "r2")), "leader-worker-set:ml/g/1/r2 4 of 4 [leader 1, worker 3] | worker");
  // Workers that are made only after the leader has started, or has its node, cannot be waited for.
  EXPECT_EQ(
      told(pod("0", "r1"), {object_of("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet",
                                      R"({"startupPolicy": "LeaderReady", "leaderWorkerTemplate": {"size": 4}})")}),
      "leader-worker-set:ml/g/1/r1 1 of 4 [leader 1, worker 0] | leader");
  EXPECT_EQ(told(pod("0", "r1", "rack")),
            "leader-worker-set:ml/g/1/r1 1 of 4 [leader 1, worker 0] required rack exclusive | leader");
  EXPECT_THAT(told(pod_of({{prefix + "name", "g"}, {prefix + "group-index", "0"}}, {})), HasSubstr("size is missing"));
}

TEST(Gang, Kubeflow) {
  const auto pod = [](const std::string& type) {
    return pod_of({{"training.kubeflow.org/job-name", "g"}, {"training.kubeflow.org/replica-type", type}}, {}, "{}",
                  owned_by("kubeflow.org/v1", "PyTorchJob", "g"));
  };
  const std::string replicas = R"("pytorchReplicaSpecs": {"Master": {}, "Worker": {"replicas": 3}})";
  const auto job = [&](const std::string& policy) {
    return object_of("kubeflow.org/v1", "PyTorchJob", "{" + policy + replicas + "}");
  };
  EXPECT_EQ(told(pod("master"), {job("")}), "kubeflow:PyTorchJob/ml/g 4 of 4 [master 1, worker 3] | master");
  EXPECT_EQ(told(pod("worker"), {job(R"("runPolicy": {"schedulingPolicy": {"minAvailable": 3}},)")}),
            "kubeflow:PyTorchJob/ml/g 3 of 4 [master 0, worker 0] | worker");
  EXPECT_THAT(told(pod("worker"), {job(R"("runPolicy": {"schedulingPolicy": {"minAvailable": 5}},)")}),
              HasSubstr("minAvailable is more than its 4 replicas"));
  EXPECT_EQ(told(pod("worker")), "kubeflow:PyTorchJob/ml/g waits for its group object PyTorchJob ml/g | worker");
}

TEST(Gang, MpiJobWithoutALauncherThatWaits) {
  const std::string pod = pod_of({{"training.kubeflow.org/job-name", "g"},
                                  {"training.kubeflow.org/operator-name", "mpi-operator"},
                                  {"training.kubeflow.org/job-role", "launcher"}},
                                 {}, "{}", owned_by("batch/v1", "Job", "g-launcher"));
  const std::string replicas = R"("mpiReplicaSpecs": {"Launcher": {"replicas": 1}, "Worker": {"replicas": 2}})";
  EXPECT_EQ(told(pod, {object_of("kubeflow.org/v2beta1", "MPIJob", "{" + replicas + "}")}),
            "kubeflow:MPIJob/ml/g 3 of 3 [launcher 1, worker 2] | launcher");
  EXPECT_EQ(told(pod, {object_of("kubeflow.org/v2beta1", "MPIJob",
                                 R"({"launcherCreationPolicy": "WaitForWorkersReady", )" + replicas + "}")}),
            "kubeflow:MPIJob/ml/g 2 of 3 [launcher 0, worker 2] | launcher");
}

// 1 head, and 2 * 4 hosts: replicas below minReplicas are raised to it; a suspended group has none.
TEST(Gang, RayClusterThatAsksForIt) {
  const std::string spec = R"({"workerGroupSpecs": [
      {"groupName": "w", "replicas": 1, "minReplicas": 2, "maxReplicas": 2147483647, "numOfHosts": 4},
      {"groupName": "s", "replicas": 3, "suspend": true}])";
  const std::string asks = R"(, "labels": {"ray.io/gang-scheduling-enabled": "true"})";
  const std::string pod = pod_of({{"ray.io/cluster", "g"}, {"ray.io/group", "w"}}, {});
  EXPECT_EQ(told(pod, {object_of("ray.io/v1", "RayCluster", spec + "}", asks)}),
            "ray:ml/g 9 of 9 [headgroup 1, w 8, s 0] | w");
  EXPECT_EQ(told(pod, {object_of("ray.io/v1", "RayCluster",
                                 R"({"enableInTreeAutoscaling": true, )" + spec.substr(1) + "}", asks)}),
            "ray:ml/g 9 of any [headgroup 1, w 8, s 0] | w");
  const std::string labelled =
      pod_of({{"ray.io/cluster", "g"}, {"ray.io/gang-scheduling-enabled", "true"}, {"ray.io/group", "w"}}, {});
  EXPECT_THAT(told(labelled), HasSubstr("waits for its group object RayCluster ml/g"));
}

// Every convention at once, then without the first, the second, ... as the documentation orders them.
TEST(Gang, TheFirstConventionThatAPodUsesCounts) {
  using Entry = std::pair<std::string, std::string>;
  struct Step {
    std::string name;
    std::vector<Entry> labels;
    std::vector<Entry> annotations;
  };
  const std::vector<Step> steps = {
      {"mortise", {}, {{"mortise.dev/gang-name", "g"}, {"mortise.dev/gang-min-member", "2"}}},
      {"scheduler-plugins", {{"scheduling.x-k8s.io/pod-group", "g"}}, {}},
      {"lightweight",
       {{"pod-group.scheduling.x-k8s.io/name", "g"}, {"pod-group.scheduling.x-k8s.io/min-available", "2"}},
       {}},
      {"volcano", {}, {{"scheduling.k8s.io/group-name", "g"}}},
      {"koordinator",
       {},
       {{"gang.scheduling.koordinator.sh/name", "g"}, {"gang.scheduling.koordinator.sh/min-available", "2"}}},
      {"kai", {}, {{"pod-group-name", "g"}}},
      {"kueue", {{"kueue.x-k8s.io/pod-group-name", "g"}}, {{"kueue.x-k8s.io/pod-group-total-count", "2"}}},
      {"leader-worker-set",
       {{"leaderworkerset.sigs.k8s.io/name", "g"}, {"leaderworkerset.sigs.k8s.io/group-index", "0"}},
       {{"leaderworkerset.sigs.k8s.io/size", "2"}}},
      {"kubeflow",
       {{"training.kubeflow.org/job-name", "g"}, {"training.kubeflow.org/operator-name", "mpi-operator"}},
       {}},
      {"ray", {{"ray.io/cluster", "g"}, {"ray.io/gang-scheduling-enabled", "true"}}, {}},
  };
  for (std::size_t first = 0; first < steps.size(); ++first) {
    Pod pod;
    for (std::size_t i = first; i < steps.size(); ++i) {
      pod.labels.insert(steps[i].labels.begin(), steps[i].labels.end());
      pod.annotations.insert(steps[i].annotations.begin(), steps[i].annotations.end());
    }
    const auto gang = recognise_gang(pod, {});
    ASSERT_TRUE(gang.ok()) << gang.message();
    ASSERT_TRUE(gang->has_value());
    EXPECT_EQ(gang_convention_name((*gang)->convention), steps[first].name);
  }
}

TEST(Gang, NamesInMessagesAreFitForOneLine) {
  const std::string text = told(pod_of({{"scheduling.x-k8s.io/pod-group", "a%s\nb"}}, {}));
  EXPECT_THAT(text, HasSubstr("PodGroup ml/a\\x25s\\x0ab"));
}

TEST(GangTopology, OwnAnnotationsReplaceWhatTheGroupAsks) {
  const std::string group = object_of("scheduling.volcano.sh/v1beta1", "PodGroup",
                                      R"({"minMember": 4, "networkTopology": {"highestTierAllowed": 2}})");
  const auto with = [&](const Pairs& more) {
    Pod pod = *parse_pod(pod_of({}, more));
    pod.annotations.emplace("scheduling.k8s.io/group-name", "g");
    GroupObjects objects;
    objects.put(*parse_group_object(group));
    const auto gang = recognise_gang(pod, objects);
    return gang ? test::text_of(**gang) : gang.message();
  };
  EXPECT_EQ(with({}), "volcano:ml/g 4 of any required tier-2");
  EXPECT_EQ(with({{"mortise.dev/topology-required", "block"}, {"mortise.dev/topology-preferred", "rack"}}),
            "volcano:ml/g 4 of any required block; preferred rack");
  EXPECT_EQ(with({{"mortise.dev/topology-required", ""}}),
            "annotation mortise.dev/topology-required is empty; it must name a level");
  EXPECT_EQ(with({{"kueue.x-k8s.io/podset-preferred-topology", "rack"}}),
            "volcano:ml/g 4 of any required tier-2; preferred rack");
  EXPECT_THAT(
      with({{"kueue.x-k8s.io/podset-preferred-topology", "rack"}, {"kueue.x-k8s.io/podset-required-topology", "rack"}}),
      HasSubstr("exclude each other"));
}

TEST(GangTopology, KueueAsksPerPodSetAndJobSetPerJob) {
  const Pairs labels = {{"training.kubeflow.org/job-name", "g"},
                        {"training.kubeflow.org/replica-type", "worker"},
                        {"jobset.sigs.k8s.io/job-key", "k1"}};
  const std::string job =
      object_of("kubeflow.org/v1", "PyTorchJob", R"({"pytorchReplicaSpecs": {"Worker": {"replicas": 2}}})");
  const std::string owner = owned_by("kubeflow.org/v1", "PyTorchJob", "g");
  EXPECT_EQ(told(pod_of(labels, {{"kueue.x-k8s.io/podset-required-topology", "rack"}}, "{}", owner), {job}),
            "kubeflow:PyTorchJob/ml/g 2 of 2 [worker 2] required rack per worker | worker");
  EXPECT_EQ(told(pod_of(labels, {{"alpha.jobset.sigs.k8s.io/exclusive-topology", "rack"}}, "{}", owner), {job}),
            "kubeflow:PyTorchJob/ml/g 2 of 2 [worker 2] required rack exclusive per k1 | worker");
}

TEST(GangPriority, TheGroupsElseTheOneThatAllShare) {
  GroupObjects objects;
  objects.put(*parse_group_object(R"({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                                      "metadata": {"name": "high"}, "value": 1000})"));
  GangRef gang;
  EXPECT_EQ(*gang_priority(gang, objects, std::vector<std::int32_t>{7, 7}), 7);
  EXPECT_EQ(*gang_priority(gang, objects, {}), 0);
  EXPECT_EQ(gang_priority(gang, objects, std::vector<std::int32_t>{7, -1, 100}).message(),
            "members of one gang have priorities -1 and 100; give them one, or their group a priority class");
  gang.priority_class = "high";
  EXPECT_EQ(*gang_priority(gang, objects, std::vector<std::int32_t>{7, -1}), 1000);
  gang.priority_class = "none";
  EXPECT_THAT(gang_priority(gang, objects, {}).message(), HasSubstr("\"none\" does not exist"));
  gang.priority = 5;
  EXPECT_EQ(*gang_priority(gang, objects, {}), 5);
}

TEST(GangConventions, AreAllInTheDocumentation) {
  std::ifstream in(mortise::test::source_dir() + "/docs/gangs-recognition.md");
  std::ostringstream text;
  text << in.rdbuf();
  std::size_t last = 0;
  for (const GangConventionInfo& info : gang_conventions()) {
    const std::size_t row = text.str().find("| `" + std::string(info.name) + "` |");
    ASSERT_NE(row, std::string::npos) << info.name;
    EXPECT_GT(row, last) << info.name << " is out of order";
    last = row;
  }
}

TEST(Gang, NamesLongerThanKubernetesAllowsAreRefused) {
  const auto told_of = [](std::size_t gang, std::size_t label) {
    return told(pod_of({{"l", std::string(label, 'l')}},
                       {{"mortise.dev/gang-name", std::string(gang, 'g')}, {"mortise.dev/gang-min-member", "2"}}));
  };
  EXPECT_THAT(told_of(254, 63), HasSubstr("the gang's name has 254 bytes; Kubernetes allows 253"));
  EXPECT_THAT(told_of(253, 64), HasSubstr("a label's value has 64 bytes; Kubernetes allows 63"));
  EXPECT_THAT(told_of(253, 63), testing::Not(HasSubstr("Kubernetes allows")));
}

}  // namespace
}  // namespace mortise::kube
