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
    "status": {"phase": "Running"}})");
  ASSERT_TRUE(pod.ok()) << pod.message();
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
  const std::string deep(100'000, '[');
  EXPECT_FALSE(parse_pod(deep).ok());
  EXPECT_TRUE(parse_pod("{\"x\": " + deep + std::string(100'000, ']') + "}").ok());
}

}  // namespace
}  // namespace mortise::kube
