#include "scheduler/kube/objects/cluster_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/kube/temp_file.h"

namespace mortise::kube {
namespace {

using mortise::test::TempFile;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

ClusterFile load(const std::string& content) {
  const TempFile file(content);
  auto cluster = load_cluster_file(file.path());
  if (!cluster) {
    ADD_FAILURE() << cluster.message();
    return {};
  }
  return *std::move(cluster);
}

/// The message without the name of the file, which stands first.
std::string refusal(const std::string& content) {
  const TempFile file(content);
  const auto cluster = load_cluster_file(file.path());
  if (cluster) return "accepted";
  EXPECT_THAT(cluster.message(), testing::StartsWith(file.path() + ":"));
  EXPECT_THAT(cluster.message(), testing::Not(HasSubstr("\n")));
  return cluster.message().substr(file.path().size());
}

TEST(ClusterFileOf, NodeCsv) {
  const ClusterFile file = load("sn,cpu_milli,memory_mib,gpu,model\nn-0,64000,262144,2,P100\nn-1,32000,1024,0,\n");
  ASSERT_THAT(file.nodes, SizeIs(2));
  EXPECT_EQ(file.nodes[0].name, "n-0");
  EXPECT_EQ(file.nodes[0].cpu, 64'000);
  EXPECT_EQ(file.nodes[0].memory, 262'144 * kMiB);
  EXPECT_EQ(file.nodes[0].gpus, 2);
  EXPECT_EQ(file.nodes[0].model, "P100");
  EXPECT_EQ(file.nodes[0].pods, 1001) << "as in the published study";
  EXPECT_TRUE(file.nodes[0].schedulable);
  EXPECT_EQ(file.nodes[1].gpus, 0);
  EXPECT_THAT(file.notes, IsEmpty());
}

TEST(ClusterFileOf, BadNodeCsvIsRefusedWithItsLine) {
  EXPECT_THAT(refusal("sn,cpu_milli,memory_mib,gpu,model\nn-0,many,262144,2,P100\n"), HasSubstr(":2: "));
}

TEST(ClusterFileOf, SingleNodeAsJson) {
  const ClusterFile file = load(R"({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n",
    "labels": {"nvidia.com/gpu.product": "Tesla-T4"}}, "status": {"allocatable": {"cpu": "8", "nvidia.com/gpu": "4"}}})");
  ASSERT_THAT(file.nodes, SizeIs(1));
  EXPECT_EQ(file.nodes[0].gpus, 4);
  EXPECT_EQ(file.nodes[0].model, "Tesla-T4");
}

TEST(ClusterFileOf, ObjectsWithoutKindAreToldByTheirFields) {
  EXPECT_THAT(load(R"({"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4"}}})").nodes, SizeIs(1));
  EXPECT_THAT(load(R"({"items": [{"metadata": {"name": "n"}, "status": {"allocatable": {}}}]})").nodes, SizeIs(1));
  EXPECT_THAT(load(R"([{"kind": "Node", "metadata": {"name": "n"}}])").nodes, SizeIs(1));
  EXPECT_THAT(load(R"({"kind": "NodeList", "items": [{"metadata": {"name": "n"}}]})").nodes, SizeIs(1));
  EXPECT_THAT(refusal(R"({"metadata": {"name": "n"}})"),
              HasSubstr("no kind; allowed: Node, Pod, NodeResourceTopology, or a List of them"));
}

TEST(ClusterFileOf, YamlOfSeveralDocumentsAndLineEndings) {
  const ClusterFile file = load(
      "\xEF\xBB\xBF# made by hand\r\napiVersion: v1\r\nkind: Node\r\nmetadata:\r\n  name: a\r\n  labels:\r\n"
      "    gpu: \"on\"\r\nstatus:\r\n  allocatable: {cpu: 4, memory: 1Gi, nvidia.com/gpu: '2'}\r\n---\r\n---\r\n"
      "kind: NodeList\r\nitems:\r\n- metadata: {name: b}\r\n  spec: {unschedulable: true}\r\n");
  ASSERT_THAT(file.nodes, SizeIs(2));
  EXPECT_EQ(file.nodes[0].name, "a");
  EXPECT_EQ(file.nodes[0].cpu, 4000);
  EXPECT_EQ(file.nodes[0].gpus, 2);
  EXPECT_EQ(file.nodes[1].name, "b");
  EXPECT_FALSE(file.nodes[1].schedulable);
}

TEST(ClusterFileOf, QuotedYamlScalarsStayStrings) {
  const std::string start = "kind: Node\nmetadata:\n  name: n\n  labels:\n    a: ";
  for (const char* value : {"\"on\"", "'true'", "\"5\"", "!!str 5", "on", "yes", "|-\n      5", "null", "~"}) {
    EXPECT_EQ(load(start + value + "\n").nodes.size(), 1U) << value;
  }
  EXPECT_THAT(refusal(start + "true\n"), HasSubstr("metadata.labels[\"a\"] must be a string, not of type boolean"));
  EXPECT_THAT(refusal(start + "5\n"), HasSubstr("metadata.labels[\"a\"] must be a string, not the number 5"));
  EXPECT_THAT(refusal(start + "[x]\n"), HasSubstr("metadata.labels[\"a\"] must be a string, not of type array"));
}

TEST(ClusterFileOf, Utf8NamesAreKept) {
  EXPECT_EQ(load("kind: Node\nmetadata: {name: 節点-1}\n").nodes[0].name, "節点-1");
  EXPECT_EQ(load(R"({"kind": "Node", "metadata": {"name": "\u7bc0\u70b9-1"}})").nodes[0].name, "節点-1");
}

TEST(ClusterFileOf, BrokenJsonAndYamlAreRefusedWithTheirLine) {
  EXPECT_THAT(refusal("{\n\"kind\": \"Node\",\n"), HasSubstr(":3: not valid JSON: the text ends too early"));
  EXPECT_THAT(refusal("{\n\"kind\": Node}"), HasSubstr(":2: not valid JSON: unexpected text at column 9"));
  EXPECT_THAT(refusal("kind: Node\nmetadata:\n" + std::string(400, '[') + std::string(400, ']')),
              Not(HasSubstr("nested deeper")));
  EXPECT_THAT(refusal("kind: Node\nmetadata:\n " + std::string(1000, '[') + std::string(1000, ']')),
              HasSubstr(":3: nested deeper than "));
  EXPECT_THAT(refusal("kind: Node\nmetadata:\n  name: \"\xc3\x28\""), HasSubstr(":3: not valid YAML: not UTF-8: "));
  EXPECT_THAT(refusal("kind: Node\nmetadata: [\n"), HasSubstr(":3: not valid YAML: "));
  EXPECT_THAT(refusal("kind: Node\nmetadata:\n  name: a\n bad\n"), HasSubstr(": not valid YAML: "));
  EXPECT_THAT(refusal("kind: \"a"), HasSubstr(":1: not valid YAML: "));
  EXPECT_THAT(refusal("kind: \"\\\x01\"\n"), HasSubstr("\\x01"));
  EXPECT_THAT(refusal("kind: Service\n---\n,kind: Node\n"), HasSubstr(":3: not valid YAML: "));
  EXPECT_THAT(refusal("kind: Node\nmetadata: {name: a}\n]\n"), HasSubstr("not valid YAML: "));
  EXPECT_THAT(refusal("kind: Node\nkind: Node\n"), HasSubstr(":2: not valid YAML: key \"kind\" appears twice"));
  EXPECT_THAT(refusal("kind: Node\nmetadata: &m {name: a}\nspec: *m\n"), HasSubstr(":3: not valid YAML: aliases"));
  EXPECT_THAT(refusal("kind: Node\n<<: {a: b}\n"), HasSubstr(":2: not valid YAML: merge keys"));
  EXPECT_THAT(refusal("kind: Node\n? [a]\n: b\n"), HasSubstr(":2: not valid YAML: a key must be plain text"));
}

TEST(ClusterFileOf, WrongTypesAreRefusedWithTheirPlace) {
  EXPECT_EQ(refusal(R"({"kind": "List", "items": {}})"), ": items must be an array");
  EXPECT_THAT(refusal(R"({"kind": "List", "items": [{"kind": "List", "items": []}]})"),
              HasSubstr("items[0]: a list inside a list"));
  EXPECT_EQ(refusal(R"({"kind": "List", "items": [7]})"),
            ": items[0]: must be a Kubernetes object; allowed: Node, Pod, NodeResourceTopology, or a List of them");
  EXPECT_EQ(refusal(R"({"kind": "List", "items": [{"kind": "Node", "metadata": {"name": "a"}},
                                                  {"kind": "Node", "metadata": {"name": 1}}]})"),
            ": items[1]: metadata.name must be a string, not the number 1");
  EXPECT_EQ(refusal("kind: Node\nmetadata: {name: a}\n---\nkind: Node\nmetadata: a\n"),
            ":4: metadata must be an object, not of type string");
  EXPECT_EQ(refusal("just text"),
            ":1: must be a Kubernetes object; allowed: Node, Pod, NodeResourceTopology, or a List of them");
}

TEST(ClusterFileOf, HugeNumbersAreRefused) {
  EXPECT_THAT(refusal(R"({"kind": "Node", "metadata": {"name": "a"},
                          "status": {"allocatable": {"cpu": 123456789012345678901234567890}}})"),
              HasSubstr("node \"a\": cpu: invalid quantity"));
  EXPECT_THAT(refusal(R"({"kind": "Node", "metadata": {"name": "a"}, "status": {"allocatable": {"cpu": 1e999}}})"),
              HasSubstr(":1: not valid JSON: a number is out of range"));
  EXPECT_THAT(refusal("kind: Node\nmetadata: {name: a}\nstatus: {allocatable: {nvidia.com/gpu: 1e999}}\n"),
              HasSubstr("node \"a\": nvidia.com/gpu: invalid quantity"));
}

TEST(ClusterFileOf, DuplicateNamesAreRefused) {
  EXPECT_EQ(refusal(R"({"kind": "NodeList", "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "a"}}]})"),
            ": items[1]: node \"a\" appears twice; each name may appear once");
  EXPECT_THAT(refusal("kind: Pod\nmetadata: {name: p}\n---\nkind: Pod\nmetadata: {name: p}\n"),
              HasSubstr(":4: pod \"/p\" appears twice"));
  EXPECT_THAT(refusal("sn,cpu_milli,memory_mib,gpu,model\na,1,1,0,\na,1,1,0,\n"), HasSubstr(":3: "));
}

TEST(ClusterFileOf, EmptyAndMissingFilesAreRefused) {
  EXPECT_THAT(refusal(""), HasSubstr("the file is empty"));
  EXPECT_THAT(refusal(" \n\t\r\n"), HasSubstr("the file is empty"));
  EXPECT_THAT(refusal("---\n"), HasSubstr("no Node in the file"));
  EXPECT_THAT(refusal(R"({"kind": "List", "items": null})"), HasSubstr("no Node in the file"));
  EXPECT_THAT(load_cluster_file("/nonexistent/cluster.json").message(),
              HasSubstr("/nonexistent/cluster.json: cannot be read: No such file"));
  EXPECT_THAT(load_cluster_file(testing::TempDir()).message(), HasSubstr("is a folder"));
}

TEST(ClusterFileOf, OtherObjectsAreLeftOutWithANote) {
  const ClusterFile file = load(
      "kind: Service\nmetadata: {name: s}\n---\nkind: Service\n---\nkind: Node\nmetadata: {name: a}\n---\n"
      "apiVersion: longhorn.io/v1beta2\nkind: Node\nmetadata: {name: a}\n");
  EXPECT_THAT(file.nodes, SizeIs(1));
  EXPECT_THAT(file.notes, testing::ElementsAre("objects of kind \"Service\" are left out: 2 (first: \"s\")",
                                               "objects of kind \"Node\" are left out: 1 (first: \"a\")"));
}

TEST(ClusterFileOf, UnexpectedGpuCountsAreNoted) {
  const ClusterFile file = load(
      "kind: Node\nmetadata: {name: mig, labels: {nvidia.com/gpu.count: '8'}}\n"
      "status: {allocatable: {nvidia.com/gpu: '0'}}\n---\n"
      "kind: Node\nmetadata: {name: sliced, labels: {nvidia.com/gpu.count: '4', nvidia.com/gpu.replicas: '4'}}\n"
      "status: {allocatable: {nvidia.com/gpu: '16'}}\n---\n"
      "kind: Node\nmetadata: {name: sick}\n"
      "status: {allocatable: {nvidia.com/gpu: '6'}, capacity: {nvidia.com/gpu: '8'}}\n---\n"
      "kind: Node\nmetadata: {name: plain, labels: {nvidia.com/gpu.count: '4', nvidia.com/gpu.replicas: '1'}}\n"
      "status: {allocatable: {nvidia.com/gpu: '4'}}\n");
  ASSERT_THAT(file.notes, SizeIs(3));
  EXPECT_THAT(file.notes[0], HasSubstr("1 (first: \"mig\")"));
  EXPECT_THAT(file.notes[1], HasSubstr("1 (first: \"sliced\")"));
  EXPECT_THAT(file.notes[2], HasSubstr("1 (first: \"sick\")"));
}

}  // namespace
}  // namespace mortise::kube
