#include "scheduler/kube/objects/gang_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/kube/gang_text.h"

namespace mortise::kube {
namespace {

using testing::HasSubstr;

Result<GroupObject> object_of(const std::string& api_version, const std::string& kind, const std::string& spec,
                              const std::string& more_metadata = "") {
  return parse_group_object(R"({"apiVersion": ")" + api_version + R"(", "kind": ")" + kind +
                            R"(", "metadata": {"name": "g", "namespace": "ml")" + more_metadata + R"(}, "spec": )" +
                            spec + "}");
}

std::string asks_of(const GroupObject& object) {
  std::string text;
  for (const TopologyAsk& ask : object.topology) text += (text.empty() ? "" : "; ") + test::text_of(ask);
  return text;
}

TEST(GroupObject, OnlyKnownKindsWithANameAreRead) {
  EXPECT_THAT(object_of("v1", "PodGroup", "{}").message(), HasSubstr("kind \"PodGroup\" of \"v1\""));
  EXPECT_THAT(object_of("batch.volcano.sh/v1alpha1", "Job", "{}").message(), HasSubstr("gives no gang its size"));
  EXPECT_THAT(parse_group_object("3").message(), HasSubstr("must be an object"));
  EXPECT_THAT(parse_group_object(R"({"apiVersion": "batch/v1", "kind": "Job"})").message(),
              HasSubstr("without metadata.name"));
  EXPECT_THAT(parse_group_object("{").message(), HasSubstr("line 1"));
}

TEST(GroupObject, AnyVersionOfAGroupWillDo) {
  for (const std::string version : {"v1alpha2", "v1alpha3", "v1beta1", "v1"}) {
    const auto group =
        object_of("scheduling.k8s.io/" + version, "PodGroup",
                  R"({"schedulingPolicy": {"gang": {"minCount": 4}}, "priorityClassName": "high", "priority": 9})");
    ASSERT_TRUE(group.ok()) << group.message();
    EXPECT_EQ(group->kind, GroupKind::kNativePodGroup);
    EXPECT_EQ(group->minimum, 4);
    EXPECT_EQ(group->priority_class, "high");
    EXPECT_EQ(group->priority, 9);
  }
}

TEST(GroupObject, WhatIsWrongInsideIsKeptForItsPods) {
  for (const auto& [spec, why] : std::vector<std::pair<std::string, std::string>>{
           {"{}", "spec.minMember is missing"},
           {R"({"minMember": 0})", "spec.minMember must be a whole number from 1 to 1000000, not the number 0"},
           {R"({"minMember": "3"})", "spec.minMember must be a whole number from 1 to 1000000, not of type string"},
           {R"({"minMember": 1.5})", "not the number 1.5"},
           {R"({"minMember": 1000001})", "not the number 1000001"},
           {R"({"minMember": 18446744073709551615})", "not the number 18446744073709551615"},
           {"[]", "spec must be an object"}}) {
    const auto group = object_of("scheduling.x-k8s.io/v1alpha1", "PodGroup", spec);
    ASSERT_TRUE(group.ok()) << group.message();
    EXPECT_THAT(group->invalid, HasSubstr(why));
  }
}

TEST(GroupObject, KoordinatorsAnnotationsOnAPodGroup) {
  const auto group = object_of("scheduling.sigs.k8s.io/v1alpha1", "PodGroup", R"({"minMember": 2})",
                               R"(, "annotations": {"gang.scheduling.koordinator.sh/total-number": "5",
                                   "gang.scheduling.koordinator.sh/groups": "[\"ml/g\", \"x/h\"]"})");
  ASSERT_TRUE(group.ok()) << group.message();
  EXPECT_EQ(group->invalid, "");
  EXPECT_EQ(group->total, 5);
  EXPECT_THAT(group->together, testing::ElementsAre("ml/g", "x/h"));
  EXPECT_THAT(object_of("scheduling.sigs.k8s.io/v1alpha1", "PodGroup", R"({"minMember": 2})",
                        R"(, "annotations": {"gang.scheduling.koordinator.sh/total-number": "1"})")
                  ->invalid,
              HasSubstr("less than spec.minMember"));
}

TEST(GroupObject, VolcanoTasksCountOnlyWithinTheMinimum) {
  const auto minimum_of = [](const std::string& spec) {
    const auto group = object_of("scheduling.volcano.sh/v1beta1", "PodGroup", spec);
    EXPECT_EQ(group->invalid, "");
    return group->role("w")->minimum;
  };
  EXPECT_EQ(minimum_of(R"({"minMember": 3, "minTaskMember": {"m": 1, "w": 2}})"), 2);
  EXPECT_EQ(minimum_of(R"({"minMember": 2, "minTaskMember": {"m": 1, "w": 2}})"), 0);
}

TEST(GroupObject, VolcanoNetworkTopology) {
  const auto of = [](const std::string& topology) {
    const auto group = object_of("scheduling.volcano.sh/v1beta1", "PodGroup",
                                 R"({"minMember": 2, "networkTopology": )" + topology + "}");
    return group->invalid.empty() ? asks_of(*group) : "error: " + group->invalid;
  };
  EXPECT_EQ(of(R"({"mode": "hard", "highestTierAllowed": 1})"), "required tier-1");
  EXPECT_EQ(of(R"({"highestTierName": "rack"})"), "required rack");
  EXPECT_EQ(of(R"({"mode": "soft", "highestTierAllowed": 2})"), "preferred tier-2");
  EXPECT_EQ(of(R"({"mode": "soft"})"), "preferred nearest");
  EXPECT_EQ(of(R"({"mode": "hard"})"), "");
  EXPECT_EQ(of(R"({"mode": "firm"})"), "error: spec.networkTopology.mode is \"firm\"; allowed: hard, soft");
  EXPECT_THAT(of(R"({"highestTierAllowed": 1, "highestTierName": "rack"})"), HasSubstr("use one"));
}

TEST(GroupObject, KaiSubGroupTrees) {
  const auto of = [](const std::string& spec) {
    const auto group = object_of("scheduling.run.ai/v2alpha2", "PodGroup", spec);
    if (!group->invalid.empty()) return group->invalid;
    return std::to_string(group->minimum) + " of " + std::to_string(group->roles.size()) + " roles, " +
           std::to_string(group->roles_needed);
  };
  const std::string two = R"("subGroups": [{"name": "a", "minMember": 2}, {"name": "b", "minMember": 5}])";
  EXPECT_EQ(of("{" + two + "}"), "7 of 2 roles, 0");
  EXPECT_EQ(of(R"({"minMember": 9, )" + two + "}"), "9 of 2 roles, 0");
  EXPECT_EQ(of(R"({"minSubGroup": 1, )" + two + "}"), "2 of 2 roles, 1");  // the smallest will do
  EXPECT_EQ(of(R"({"minSubGroup": 3, )" + two + "}"), "spec.minSubGroup must be 2, the number of its sub-groups");
  EXPECT_EQ(of(R"({"subGroups": [{"name": "a"}]})"), "spec.subGroups: \"a\" has no minMember");
  EXPECT_EQ(of(R"({"subGroups": [{"minMember": 1}]})"), "spec.subGroups has one without a name");
  EXPECT_EQ(of(R"({"subGroups": [{"name": "a", "minMember": 1}, {"name": "a", "minMember": 1}]})"),
            "spec.subGroups has \"a\" twice");
  EXPECT_EQ(of(R"({"subGroups": [{"name": "a", "minMember": 1, "parent": "x"}]})"),
            "spec.subGroups: parent \"x\" of \"a\" does not exist");
  EXPECT_EQ(of(R"({"subGroups": [{"name": "a", "minMember": 1, "parent": "b"}, {"name": "b", "parent": "a"}]})"),
            "spec.subGroups: \"a\" is its own ancestor, or more than 16 deep");
  EXPECT_EQ(of(R"({"subGroups": [{"name": "p", "minSubGroup": 1}, {"name": "a", "minMember": 1, "parent": "p"},
                                 {"name": "b", "minMember": 1, "parent": "p"}]})"),
            "spec.subGroups: minSubGroup of \"p\" must be 2, the number of its sub-groups");
  EXPECT_EQ(of("{}"), "spec.minMember is missing");
}

// 1000 jobs of 1001 pods: more than a million.
TEST(GroupObject, TooManyPodsAreTakenForAMistake) {
  const auto set = object_of("jobset.x-k8s.io/v1alpha2", "JobSet",
                             R"({"replicatedJobs": [{"name": "a", "replicas": 1000,
                                 "template": {"spec": {"parallelism": 1001}}}]})");
  EXPECT_EQ(set->invalid, "asks for more than 1000000 pods");
}

TEST(GroupObjects, HoldTheLastStateOfEachByKindNamespaceAndName) {
  GroupObjects objects;
  objects.put(*object_of("scheduling.x-k8s.io/v1alpha1", "PodGroup", R"({"minMember": 3})"));
  objects.put(*object_of("scheduling.volcano.sh/v1beta1", "PodGroup", R"({"minMember": 4})"));
  EXPECT_EQ(objects.find(GroupKind::kPodGroup, "ml", "g")->minimum, 3);
  EXPECT_EQ(objects.find(GroupKind::kVolcanoPodGroup, "ml", "g")->minimum, 4);
  EXPECT_EQ(objects.find(GroupKind::kPodGroup, "x", "g"), nullptr);
  objects.put(*object_of("scheduling.x-k8s.io/v1alpha1", "PodGroup", R"({"minMember": 5})"));
  EXPECT_EQ(objects.find(GroupKind::kPodGroup, "ml", "g")->minimum, 5);
  EXPECT_EQ(objects.size(), 2U);
  objects.remove(GroupKind::kPodGroup, "ml", "g");
  EXPECT_EQ(objects.find(GroupKind::kPodGroup, "ml", "g"), nullptr);
  EXPECT_EQ(objects.size(), 1U);
}

TEST(GroupKinds, FoundByApiGroupAndKind) {
  EXPECT_EQ(find_group_kind("kubeflow.org/v1", "TFJob"), GroupKind::kTfJob);
  EXPECT_EQ(find_group_kind("batch/v1", "Job"), GroupKind::kJob);
  EXPECT_EQ(find_group_kind("batch.volcano.sh/v1alpha1", "Job"), std::nullopt);
  EXPECT_EQ(find_group_kind("v1", "Pod"), std::nullopt);
  EXPECT_EQ(group_kind_name(GroupKind::kRayCluster), "RayCluster");
}

}  // namespace
}  // namespace mortise::kube
