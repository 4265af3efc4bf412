// What the nodes of a cluster file become when something is said about their inside.
#include "scheduler/kube/objects/node_topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scheduler/kube/objects/cluster_file.h"
#include "tests/unit/kube/temp_file.h"

namespace mortise::kube {
namespace {

using placement::AssignmentMode;
using placement::GpuMask;
using placement::NodeTopology;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using topology::TopologyPolicy;
using topology::TopologyScope;

struct NodeText {
  std::string name = "n";
  std::string labels = "";
  std::string annotations = "";
  std::string gpus = "8";
  std::string allocatable = "";  // more of it
  std::string capacity = "";
  std::string status = "";
};

std::string text_of(const NodeText& node) {
  return "kind: Node\nmetadata:\n  name: " + node.name + "\n  labels: {" + node.labels + "}\n  annotations: {" +
         node.annotations + "}\nstatus:\n  allocatable: {nvidia.com/gpu: '" + node.gpus + "'" + node.allocatable +
         "}\n  capacity: {" + node.capacity + "}\n" + node.status + "---\n";
}

/// Two NUMA nodes with four GPUs and 16 CPUs each.
std::string report(const std::string& name, const std::string& attributes = "",
                   const std::string& cpus = "capacity: 16, allocatable: 16") {
  const std::string resources =
      "resources: [{name: nvidia.com/gpu, capacity: 4}, {name: cpu, " + cpus + "}, {name: memory, capacity: 100Gi}]}\n";
  return "apiVersion: topology.node.k8s.io/v1alpha2\nkind: NodeResourceTopology\nmetadata: {name: " + name +
         "}\nattributes: [" + attributes + "]\nzones:\n- {name: node-0, type: Node, " + resources +
         "- {name: node-1, type: Node, " + resources + "---\n";
}

const std::string kPolicy =
    "{name: topologyManagerPolicy, value: restricted}, {name: topologyManagerScope, value: pod}";
const std::string kDgx1 =
    "nvidia.com/gpu.product: Tesla-V100-SXM2-32GB, nvidia.com/gpu.count: '8', "
    "nvidia.com/gpu.machine: NVIDIA-DGX-1-with-V100";

ClusterFile load(const std::string& content, const ClusterOptions& options = {}) {
  const test::TempFile file(content);
  auto cluster = load_cluster_file(file.path(), options);
  if (!cluster) {
    ADD_FAILURE() << cluster.message();
    return {};
  }
  return *std::move(cluster);
}

/// The topology of the only node; its notes are in `notes`.
struct Loaded {
  std::shared_ptr<const NodeTopology> topology;
  std::vector<std::string> notes;
};
Loaded load_one(const std::string& content) {
  ClusterFile file = load(content);
  if (file.nodes.size() != 1) return {};
  return {file.nodes[0].topology, file.notes};
}

std::string cpus_text(const topology::IndexSet& cpus) {
  std::string text;
  cpus.for_each([&](std::size_t cpu) { text += (text.empty() ? "" : " ") + std::to_string(cpu); });
  return text;
}

TEST(NodeTopologyOf, NodeResourceTopologyGivesNumaNodesAndKubelet) {
  const Loaded one = load_one(text_of({}) + report("n", kPolicy));
  ASSERT_NE(one.topology, nullptr);
  EXPECT_EQ(one.topology->gpus(), 8);
  EXPECT_THAT(one.topology->numa_classes(), ElementsAre(GpuMask{0x0f}, GpuMask{0xf0}));
  EXPECT_EQ(one.topology->kubelet().policy, TopologyPolicy::kRestricted);
  EXPECT_EQ(one.topology->kubelet().scope, TopologyScope::kPod);
  EXPECT_EQ(one.topology->spec().mode, AssignmentMode::kPredicted);
  EXPECT_FALSE(one.topology->plugin_known()) << "nothing tells the ways between the GPUs";
  EXPECT_THAT(one.notes, IsEmpty());
}

TEST(NodeTopologyOf, OrderAndFormOfTheObjectsDoNotMatter) {
  const Loaded one = load_one(text_of({}) + report("n", kPolicy));
  const Loaded reversed = load_one(report("n", kPolicy) + text_of({}));
  ASSERT_NE(reversed.topology, nullptr);
  EXPECT_EQ(reversed.topology->spec().kubelet, one.topology->spec().kubelet);
  EXPECT_EQ(reversed.topology->numa_classes(), one.topology->numa_classes());

  const Loaded listed = load_one(
      R"({"kind": "List", "items": [
      {"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology", "metadata": {"name": "n"},
       "zones": [{"name": "node-0", "type": "Node", "resources": [{"name": "nvidia.com/gpu", "capacity": "2"}]}]},
      {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"nvidia.com/gpu": "2"}}}]})");
  ASSERT_NE(listed.topology, nullptr);
  EXPECT_THAT(listed.topology->numa_classes(), ElementsAre(GpuMask{3}));

  // As the API server itself answers: items of a typed list have neither kind nor version.
  const Loaded typed_list =
      load_one(text_of({.gpus = "1"}) +
               R"({"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopologyList", "items": [
      {"metadata": {"name": "n"}, "zones": [{"name": "node-0", "type": "Node",
       "resources": [{"name": "nvidia.com/gpu", "capacity": "1"}]}]}]})");
  EXPECT_NE(typed_list.topology, nullptr);
}

TEST(NodeTopologyOf, LabelsNameAMachineOfTheCatalogue) {
  const Loaded one = load_one(text_of({.labels = kDgx1}));
  ASSERT_NE(one.topology, nullptr);
  // The hybrid cube mesh: GPU 0 has a double link to 3 and none to 5.
  EXPECT_EQ(one.topology->graph().link(0, 3).nvlinks, 2);
  EXPECT_FALSE(one.topology->nvlinked(GpuMask{0b100001}));
  EXPECT_TRUE(one.topology->plugin_known());
  EXPECT_EQ(one.topology->kubelet().policy, TopologyPolicy::kNone);
  EXPECT_FALSE(one.topology->managed());
  EXPECT_THAT(one.notes, ElementsAre("labels: taken for a dgx-1v of the machine catalogue: 1 (first: \"n\")"));
}

TEST(NodeTopologyOf, TheAnnotationGoesBeforeTheOthers) {
  const std::string two =
      R"(mortise.dev/topology: '{"gpus":[{"index":0,"numa":1},{"index":1,"numa":0}],"links":[{"a":0,"b":1,"class":"NV4"}]}')";
  const Loaded one =
      load_one(text_of({.labels = "nvidia.com/gpu.product: Tesla-V100-SXM2-16GB, nvidia.com/gpu.count: '2'",
                        .annotations = two,
                        .gpus = "2"}));
  ASSERT_NE(one.topology, nullptr);
  EXPECT_EQ(one.topology->graph().link(0, 1).nvlinks, 4);
  EXPECT_EQ(one.topology->numa_of(0), topology::numa_bit(1));
}

TEST(NodeTopologyOf, AMalformedAnnotationLeavesTheNodeUsableByCount) {
  const ClusterFile file = load(text_of({.annotations = "mortise.dev/topology: '{\"gpus\": 8'"}) +
                                text_of({.name = "m", .annotations = "mortise.dev/topology: '{\"gpus\": 8'"}));
  EXPECT_EQ(file.nodes[0].gpus, 8);
  EXPECT_EQ(file.nodes[0].topology, nullptr);
  EXPECT_THAT(file.notes, ElementsAre("annotation left out: mortise.dev/topology:1: not JSON: 2 (first: \"n\")"));
}

TEST(NodeTopologyOf, KubeletComesFromTheReportThenTheAnnotation) {
  const std::string annotation = "mortise.dev/kubelet: 'policy=best-effort,scope=container,cpu=static'";
  const Loaded annotated = load_one(text_of({.annotations = annotation}) + report("n"));
  ASSERT_NE(annotated.topology, nullptr);
  EXPECT_EQ(annotated.topology->kubelet().policy, TopologyPolicy::kBestEffort);
  EXPECT_TRUE(annotated.topology->kubelet().cpu_static);

  const Loaded both = load_one(text_of({.annotations = annotation}) + report("n", kPolicy));
  ASSERT_NE(both.topology, nullptr);
  EXPECT_EQ(both.topology->kubelet().policy, TopologyPolicy::kRestricted);
  EXPECT_EQ(both.topology->kubelet().scope, TopologyScope::kPod);
  EXPECT_TRUE(both.topology->kubelet().cpu_static) << "only the annotation tells of the CPU manager";
  EXPECT_THAT(both.notes, Contains(HasSubstr("different policies; the latter counts: 1 (first: \"n\")")));
}

TEST(NodeTopologyOf, TheDeprecatedFieldAndTheMostNumaNodesAreRead) {
  std::string text = report("n", "{name: topologyManagerMaxNUMANodes, value: '12'}");
  text.insert(text.find("zones:"), "topologyPolicies: [SingleNUMANodePodLevel]\n");
  const Loaded one = load_one(text_of({}) + text);
  ASSERT_NE(one.topology, nullptr);
  EXPECT_EQ(one.topology->kubelet().policy, TopologyPolicy::kSingleNumaNode);
  EXPECT_EQ(one.topology->kubelet().scope, TopologyScope::kPod);
  EXPECT_EQ(one.topology->kubelet().max_allowable_numa_nodes, 12);
}

TEST(NodeTopologyOf, AMalformedKubeletAnnotationIsNoneWithANote) {
  const Loaded one = load_one(text_of({.labels = kDgx1, .annotations = "mortise.dev/kubelet: 'polcy=restricted'"}));
  ASSERT_NE(one.topology, nullptr);
  EXPECT_EQ(one.topology->kubelet().policy, TopologyPolicy::kNone);
  EXPECT_THAT(one.notes, Contains(AllOf(HasSubstr("annotation mortise.dev/kubelet left out: unknown key \"polcy\""),
                                        HasSubstr("(first: \"n\")"))));
}

TEST(NodeTopologyOf, TheReleaseOfKubeletIsThatOfTheNode) {
  const auto rules = [](const std::string& version, const std::string& annotation = "") {
    const Loaded one = load_one(text_of(
        {.labels = kDgx1, .annotations = annotation, .status = "  nodeInfo: {kubeletVersion: '" + version + "'}\n"}));
    return one.topology == nullptr ? topology::KubeletRules{} : one.topology->kubelet().rules;
  };
  // Equal masks since 1.24, hints of nodes with devices only since 1.36.
  EXPECT_FALSE(rules("v1.23.4").equal_masks);
  EXPECT_TRUE(rules("v1.30.2-eks-1552ad0").equal_masks);
  EXPECT_FALSE(rules("v1.30.2-eks-1552ad0").device_nodes_only);
  EXPECT_TRUE(rules("v1.36.0+k3s1").device_nodes_only);
  EXPECT_FALSE(rules("v1.23.4", "mortise.dev/kubelet: version=1.36").equal_masks) << "the node says it itself";
  EXPECT_FALSE(rules("", "mortise.dev/kubelet: version=1.23").equal_masks);
  const Loaded odd = load_one(text_of({.labels = kDgx1, .status = "  nodeInfo: {kubeletVersion: latest}\n"}));
  EXPECT_THAT(odd.notes, Contains(HasSubstr("status.nodeInfo.kubeletVersion left out: \"latest\" is not a kubelet")));
}

// A DGX-1 has CPUs 0-19 and 40-59 on NUMA node 0: CPU 40 is the second thread of the core of CPU 0. Kubelet reserves
// whole cores first, in ascending order.
TEST(NodeTopologyOf, ReservedCpusAreThoseThatKubeletWouldTake) {
  const auto reserved = [](const std::string& settings, const std::string& cpu) {
    const Loaded one = load_one(text_of({.labels = kDgx1,
                                         .annotations = "mortise.dev/kubelet: '" + settings + "'",
                                         .allocatable = ", cpu: '" + cpu + "'",
                                         .capacity = "cpu: '80'"}));
    return one.topology == nullptr ? "no topology" : cpus_text(one.topology->spec().reserved_cpus);
  };
  EXPECT_EQ(reserved("cpu=static", "78"), "0 40");
  EXPECT_EQ(reserved("cpu=static", "78500m"), "0 40");  // 1.5 CPUs, rounded up
  EXPECT_EQ(reserved("cpu=static", "76"), "0 1 40 41");
  EXPECT_EQ(reserved("cpu=static", "79"), "0");
  EXPECT_EQ(reserved("cpu=static", "80"), "");
  EXPECT_EQ(reserved("cpu=static,reserved-cpus=0-1;20", "78"), "0 1 20");
  EXPECT_EQ(reserved("policy=restricted,reserved-cpus=0-1", "78"), "") << "without the static policy none matter";
  EXPECT_EQ(reserved("cpu=static,reserved-cpus=99", "78"), "no topology");
}

TEST(NodeTopologyOf, ReservedCpusByZoneGoBeforeTheSum) {
  std::string zones = report("n", kPolicy);
  zones.replace(zones.rfind("allocatable: 16"), 15, "allocatable: 14");
  const Loaded one =
      load_one(text_of({.annotations = "mortise.dev/kubelet: cpu=static", .allocatable = ", cpu: '30'"}) + zones);
  ASSERT_NE(one.topology, nullptr);
  // The report counts CPUs, so ids follow the NUMA nodes: the second has 16-31.
  EXPECT_EQ(cpus_text(one.topology->spec().reserved_cpus), "16 17");
}

TEST(NodeTopologyOf, ReservedMemoryIsTakenFromTheLowestNumaNodes) {
  constexpr Bytes kGiB = Bytes{1} << 30;
  const auto reserved = [](const std::string& settings, const std::string& memory) {
    const Loaded one = load_one(text_of({.annotations = "mortise.dev/kubelet: 'memory=static" + settings + "'",
                                         .allocatable = ", memory: " + memory}) +
                                report("n"));
    return one.topology == nullptr ? std::vector<Bytes>{-1} : one.topology->spec().reserved_memory;
  };
  EXPECT_THAT(reserved("", "190Gi"), ElementsAre(10 * kGiB));
  EXPECT_THAT(reserved("", "95Gi"), ElementsAre(100 * kGiB, 5 * kGiB));
  EXPECT_THAT(reserved("", "200Gi"), IsEmpty());
  EXPECT_THAT(reserved(",reserved-memory=1:2Gi", "190Gi"), ElementsAre(0, 2 * kGiB));
  EXPECT_THAT(reserved(",reserved-memory=2:1Gi", "190Gi"), ElementsAre(-1)) << "there is no NUMA node 2";
}

TEST(NodeTopologyOf, ALostGpuMakesTheTopologyUnknown) {
  const ClusterFile file = load(text_of({.labels = kDgx1, .gpus = "7"}));
  EXPECT_EQ(file.nodes[0].gpus, 7);
  EXPECT_EQ(file.nodes[0].topology, nullptr);
  EXPECT_THAT(file.notes, Contains(AllOf(HasSubstr("another number of allocatable GPUs than their topology"),
                                         HasSubstr("(first: \"n\")"))));
  // Replicas of shared GPUs are no GPUs of the machine.
  const Loaded shared = load_one(text_of({.labels = kDgx1 + ", nvidia.com/gpu.replicas: '4'", .gpus = "32"}));
  EXPECT_EQ(shared.topology, nullptr);
}

TEST(NodeTopologyOf, PodsOnMoreGpusThanTheNodeHasMakeTheTopologyUnknown) {
  const std::string pod =
      "kind: Pod\nmetadata: {name: p, namespace: d}\nspec:\n  nodeName: n\n  containers:\n"
      "  - {name: c, resources: {limits: {nvidia.com/gpu: '3'}}}\n";
  const Loaded one = load_one(text_of({.labels = "nvidia.com/gpu.product: Tesla-T4, nvidia.com/gpu.count: '2'",
                                       .gpus = "2",
                                       .allocatable = ", cpu: '8', memory: 1Gi"}) +
                              pod);
  EXPECT_EQ(one.topology, nullptr);
  EXPECT_THAT(one.notes, Contains(HasSubstr("holds more than it has and counts as full: GPUs (has 2, held 3)")));
}

TEST(NodeTopologyOf, GpusCutIntoMigDevicesHaveNone) {
  const Loaded one = load_one(text_of({.labels = "nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB-MIG-1g.5gb, "
                                                 "nvidia.com/gpu.count: '8'"}) +
                              report("n"));
  EXPECT_EQ(one.topology, nullptr);
  EXPECT_THAT(one.notes, Contains(HasSubstr("cut into MIG devices have no topology: 1 (first: \"n\")")));
}

TEST(NodeTopologyOf, WhatCannotBeForeseenIsSaid) {
  const auto note = [](const NodeText& node, const std::string& more = "") {
    const Loaded one = load_one(text_of(node) + more);
    EXPECT_EQ(one.topology, nullptr);
    return one.notes.empty() ? "no note" : one.notes.back();
  };
  const std::string unknown = "nvidia.com/gpu.product: Quadro-Z, nvidia.com/gpu.count: '8'";
  EXPECT_EQ(note({.labels = unknown}), "no note") << "nothing is known, nothing was left out";
  EXPECT_THAT(note({.labels = unknown, .annotations = "mortise.dev/kubelet: policy=restricted"}),
              HasSubstr("kubelet's policy is restricted, but no source tells the NUMA nodes of the GPUs"));
  EXPECT_THAT(note({.annotations = "mortise.dev/kubelet: mode=enforced"}, report("n")),
              HasSubstr("mode is enforced, but no source tells which GPU is near which NUMA node"));
  EXPECT_THAT(note({.labels = kDgx1,
                    .annotations = "mortise.dev/kubelet: "
                                   "'cpu=static,cpu-options=full-pcpus-only:true;distribute-cpus-across-cores:true'"}),
              HasSubstr("kubelet does not start with both full-pcpus-only and distribute-cpus-across-cores"));
  EXPECT_THAT(
      note({.annotations = "mortise.dev/topology: "
                           "'{\"gpus\":[{\"index\":0,\"numa\":0}],\"links\":[]}', mortise.dev/kubelet: memory=static",
            .gpus = "1"}),
      HasSubstr("memory manager Static needs the memory of NUMA node 0, which no source tells"));
}

TEST(NodeTopologyOf, KubeletDoesNotStartWithAPolicyOnMoreNumaNodesThanAllowed) {
  std::string zones =
      "apiVersion: topology.node.k8s.io/v1alpha2\nkind: NodeResourceTopology\nmetadata: {name: n}\nzones:\n";
  for (int id = 0; id < 9; ++id) {
    zones +=
        "- {name: node-" + std::to_string(id) + ", type: Node, resources: [{name: nvidia.com/gpu, capacity: 1}]}\n";
  }
  const auto load_with = [&](const std::string& settings) {
    return load_one(text_of({.annotations = "mortise.dev/kubelet: '" + settings + "'", .gpus = "9"}) + zones);
  };
  EXPECT_NE(load_with("policy=none").topology, nullptr);
  EXPECT_NE(load_with("policy=restricted,options=max-allowable-numa-nodes:9").topology, nullptr);
  const Loaded refused = load_with("policy=restricted");
  EXPECT_EQ(refused.topology, nullptr);
  EXPECT_THAT(refused.notes, Contains(HasSubstr("does not start with policy restricted on 9 NUMA nodes; "
                                                "max-allowable-numa-nodes is 8")));
}

TEST(NodeTopologyOf, ACatalogueMachineWithOtherCpusLendsNone) {
  const Loaded plain = load_one(text_of({.labels = kDgx1, .capacity = "cpu: '96'"}));
  ASSERT_NE(plain.topology, nullptr);
  EXPECT_THAT(plain.notes, Contains(HasSubstr("the node has other CPUs than that machine")));
  const Loaded managed =
      load_one(text_of({.labels = kDgx1, .annotations = "mortise.dev/kubelet: cpu=static", .capacity = "cpu: '96'"}));
  EXPECT_EQ(managed.topology, nullptr);
  EXPECT_THAT(managed.notes, Contains(HasSubstr("CPU manager static needs the CPUs of NUMA node 0")));
  // 2 x 256 GiB less what firmware and Linux keep.
  const Loaded memory = load_one(text_of(
      {.labels = kDgx1, .annotations = "mortise.dev/kubelet: memory=static", .capacity = "cpu: '80', memory: 503Gi"}));
  EXPECT_NE(memory.topology, nullptr);
  const Loaded less = load_one(text_of(
      {.labels = kDgx1, .annotations = "mortise.dev/kubelet: memory=static", .capacity = "cpu: '80', memory: 251Gi"}));
  EXPECT_EQ(less.topology, nullptr);
}

TEST(NodeTopologyOf, AlikeNodesShareOne) {
  std::string other = report("b", kPolicy);
  other.replace(other.find("100Gi"), 5, "99Gi");
  const ClusterFile file = load(text_of({.name = "a"}) + text_of({.name = "b"}) + text_of({.name = "c"}) +
                                report("a", kPolicy) + other + report("c"));
  ASSERT_NE(file.nodes[0].topology, nullptr);
  EXPECT_EQ(file.nodes[0].topology, file.nodes[1].topology) << "memory decides nothing here";
  EXPECT_NE(file.nodes[0].topology, file.nodes[2].topology) << "another kubelet";
  EXPECT_EQ(&file.nodes[0].topology->graph(), &file.nodes[2].topology->graph()) << "on the same machine";
}

TEST(NodeTopologyOf, ReportsThatLeadNowhereAreNoted) {
  const ClusterFile file = load(text_of({}) + report("gone") +
                                "apiVersion: topology.node.k8s.io/v1alpha2\nkind: NodeResourceTopology\n"
                                "metadata: {name: n}\nzones: [{name: here, type: Node}]\n");
  EXPECT_EQ(file.nodes[0].topology, nullptr);
  EXPECT_THAT(file.notes,
              ElementsAre(HasSubstr("NodeResourceTopology left out: zones[0].name: is \"here\"; allowed: a name that"),
                          "NodeResourceTopology objects of nodes that are not in the file are left out: 1 (first: "
                          "\"gone\")"));
  const test::TempFile twice(text_of({}) + report("n") + report("n"));
  EXPECT_THAT(load_cluster_file(twice.path()).message(), HasSubstr("NodeResourceTopology \"n\" appears twice"));
}

TEST(NodeTopologyOf, TheCatalogueMattersOnlyWhereItIsNeeded) {
  const ClusterOptions nowhere{.catalogue = "/nonexistent/topologies"};
  EXPECT_EQ(load(text_of({}), nowhere).nodes.size(), 1U);
  EXPECT_NE(load(text_of({}) + report("n"), nowhere).nodes[0].topology, nullptr);
  EXPECT_EQ(load("sn,cpu_milli,memory_mib,gpu,model\nn-0,64000,262144,2,P100\n", nowhere).nodes.size(), 1U);
  const test::TempFile labelled(text_of({.labels = kDgx1}));
  EXPECT_THAT(load_cluster_file(labelled.path(), nowhere).message(),
              AllOf(HasSubstr("/nonexistent/topologies"), HasSubstr("--catalogue")));
}

}  // namespace
}  // namespace mortise::kube
