#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/topology/machine_json.h"
#include "scheduler/topology/sources/hwloc_xml.h"
#include "scheduler/topology/sources/nrt_json.h"
#include "scheduler/topology/sources/synthetic.h"

namespace mortise::topology {
namespace {

std::string annotation_refusal(std::string_view text) {
  const auto reading = read_machine_json(text, "a");
  EXPECT_FALSE(reading.ok()) << text;
  return reading ? std::string() : reading.message();
}

TEST(TopologyAnnotation, SaysAllThatTheMachineSays) {
  auto reading = read_synthetic(
      "socket:1 numa:2 switch:2 gpu:1@0,1@3 nic:1 cpu:2x2 memory:1Gi distance:12 gpumem:1Gi "
      "model:V100 nvlink:0-1*2 policy:restricted scope:pod",
      "s");
  ASSERT_TRUE(reading.ok()) << reading.message();
  reading->machine.gpus[0].uuid = "GPU-1";
  reading->machine.gpus[1].numa = {0, 1};
  reading->machine.nics[0].device = "mlx5_0";
  const std::string text = to_json_text(reading->machine);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const auto again = read_machine_json(text, "a");
  ASSERT_TRUE(again.ok()) << again.message();
  EXPECT_EQ(again->machine, reading->machine);
}

TEST(TopologyAnnotation, DerivedValuesOfTheCommandLineAreSkipped) {
  const auto reading = read_machine_json(
      R"({"gpus":[{"index":0,"numa":null,"cpus":null},{"index":1}],"nics":[],"nic_links":[],
          "links":[{"a":1,"b":0,"class":"NV2","nvlinks":2,"mb_per_s":50000}],"best":[{"k":2}]})",
      "a");
  ASSERT_TRUE(reading.ok()) << reading.message();
  EXPECT_EQ(reading->machine.gpu_links[0].nvlinks, 2);
  EXPECT_EQ(reading->machine.gpu_links[0].a, 0);
}

TEST(TopologyAnnotation, MistakesNameTheirPlace) {
  EXPECT_EQ(annotation_refusal("{\"gpus\":[\n{]"), "a:2: not JSON");
  EXPECT_THAT(annotation_refusal("[]"), testing::StartsWith("a: topology: is"));
  EXPECT_THAT(annotation_refusal(R"({"gpus":[{"index":0,"colour":1}]})"),
              testing::StartsWith("a: gpus[0]: unknown key"));
  EXPECT_EQ(annotation_refusal(R"({"gpus":[{"numa":0}]})"), "a: gpus[0].index: is missing");
  EXPECT_THAT(annotation_refusal(R"({"gpus":[{"index":0,"numa":64}]})"), testing::StartsWith("a: gpus[0].numa: is"));
  EXPECT_THAT(annotation_refusal(R"({"gpus":[{"index":0}],"links":[{"a":0,"b":7}]})"),
              testing::StartsWith("a: links[0].b: is no index"));
  EXPECT_THAT(annotation_refusal(R"({"gpus":[{"index":0},{"index":1}],"links":[{"a":0,"b":1,"class":"NVX"}]})"),
              testing::StartsWith("a: links[0].class: is \"NVX\""));
  EXPECT_THAT(annotation_refusal(R"({"gpus":[{"index":0},{"index":1}],"links":[{"a":0,"b":1,"class":"FAR"}]})"),
              testing::StartsWith("a: links[0].class: is \"FAR\""));
  EXPECT_EQ(annotation_refusal(R"({"gpus":[{"index":0},{"index":0}]})"), "a: GPU 0 is out of order or named twice");
  EXPECT_THAT(annotation_refusal(std::string(100, '[')), testing::StartsWith("a:1: "));
  EXPECT_EQ(annotation_refusal(std::string(100, '[') + std::string(100, ']')), "a:1: nested deeper than 32 levels");
}

std::string nrt_refusal(std::string_view text) {
  const auto reports = read_node_topologies(text, "n");
  EXPECT_FALSE(reports.ok()) << text;
  return reports ? std::string() : reports.message();
}

constexpr std::string_view kZone = R"({"name":"node-0","type":"Node","resources":[{"name":"cpu","capacity":"8"}]})";

std::string nrt(const std::string& extra) {
  return R"({"kind":"NodeResourceTopology","metadata":{"name":"n1"},)" + extra + "}";
}

TEST(NrtJson, AttributesGoBeforeTopologyPolicies) {
  const auto reading = read_nrt_json(
      nrt(R"("topologyPolicies":["SingleNUMANodePodLevel"],"attributes":[{"name":"topologyManagerPolicy","value":"restricted"},
             {"name":"topologyManagerMaxNUMANodes","value":"16"},{"name":"nodeTopologyPodsFingerprint","value":"x"}])"),
      "n");
  ASSERT_TRUE(reading.ok()) << reading.message();
  EXPECT_EQ(reading->machine.kubelet.policy, TopologyPolicy::kRestricted);
  EXPECT_EQ(reading->machine.kubelet.scope, TopologyScope::kPod);
  EXPECT_EQ(reading->machine.kubelet.max_numa_nodes, 16);
  EXPECT_TRUE(reading->notes.empty());
}

TEST(NrtJson, WordsThatKubeletDoesNotKnowAreNotedNotGuessed) {
  const auto reading = read_nrt_json(
      nrt(R"("topologyPolicies":["Strict"],"attributes":[{"name":"topologyManagerPolicy","value":"strict"}])"), "n");
  ASSERT_TRUE(reading.ok()) << reading.message();
  EXPECT_FALSE(reading->machine.kubelet.policy.has_value());
  EXPECT_EQ(reading->notes.size(), 2U);
}

TEST(NrtJson, ZonesOfOtherTypesAreLeftOutAndNodesSorted) {
  const auto reports = read_node_topologies(
      nrt(R"("zones":[{"name":"node-1","type":"Node"},{"name":"socket-0","type":"Socket"},{"name":"node-0"}])"), "n");
  ASSERT_TRUE(reports.ok()) << reports.message();
  ASSERT_EQ(reports->front().zones.size(), 2U);
  EXPECT_EQ(reports->front().zones[0].name, "node-0");
  EXPECT_EQ(reports->front().reading.notes.size(), 1U);
}

TEST(NrtJson, ListsGiveOneReportPerNode) {
  const std::string one = nrt("\"zones\":[" + std::string(kZone) + "]");
  const auto reports = read_node_topologies(R"({"kind":"List","items":[)" + one + "," + one + "]}", "n");
  ASSERT_TRUE(reports.ok()) << reports.message();
  EXPECT_EQ(reports->size(), 2U);
  EXPECT_EQ(reports->front().zones[0].resources[0].available, 8000);
  EXPECT_FALSE(read_nrt_json(R"({"kind":"List","items":[)" + one + "," + one + "]}", "n").ok());
}

TEST(NrtJson, MistakesNameTheirPlace) {
  EXPECT_EQ(nrt_refusal("{"), "n:1: not JSON");
  EXPECT_EQ(nrt_refusal(R"({"kind":"Pod"})"), "n: kind is \"Pod\"; allowed: NodeResourceTopology, a List of them");
  EXPECT_THAT(nrt_refusal(nrt(R"("zones":[{"name":"left"}])")), testing::StartsWith("n: zones[0].name: is \"left\""));
  EXPECT_EQ(nrt_refusal(nrt(R"("zones":[{"name":"node-0","resources":[{"capacity":1}]}])")),
            "n: zones[0].resources[0].name: is missing");
  EXPECT_THAT(nrt_refusal(nrt(R"("zones":[{"name":"node-0","resources":[{"name":"memory","capacity":"1Zi"}]}])")),
              testing::StartsWith("n: zones[0].resources[0].capacity: "));
  EXPECT_EQ(nrt_refusal(nrt(R"("zones":[{"name":"node-0"},{"name":"numa-0"}])")),
            "n: NUMA node 0 is out of order or named twice");
  EXPECT_EQ(nrt_refusal(nrt(R"("zones":[{"name":"node-0","costs":[{"name":"node-5","value":10}]}])")),
            "n: NUMA node 0: distance to 5, which is no NUMA node of the machine");
  EXPECT_THAT(nrt_refusal(nrt(R"("zones":[{"name":"node-0","resources":[{"name":"nvidia.com/gpu","capacity":65}]}])")),
              testing::StartsWith("n: zone \"node-0\": 65 GPUs; allowed: up to 64"));
}

// Two GPUs below a switch of node 0, joined by two NVLinks, one GPU on node 1; ours.
constexpr std::string_view kXml = R"(<?xml version="1.0"?>
<topology version="2.0">
 <object type="Machine" nodeset="0x3"><info name="HostName" value="n1"/>
  <object type="Package" os_index="0" nodeset="0x1">
   <object type="NUMANode" os_index="0" cpuset="0x1,,0xf" local_memory="1024"/>
   <object type="Bridge" bridge_type="0-1">
    <object type="Bridge" bridge_type="1-1">
     <object type="PCIDev" pci_busid="0000:01:00.0"><object type="OSDev" name="nvml0" gp_index="11" osdev_type="1">
      <info name="GPUModel" value="Tesla V100-SXM2-16GB"/><info name="NVIDIAUUID" value="GPU-a"/></object></object>
     <object type="PCIDev" pci_busid="0000:02:00.0"><object type="OSDev" name="nvml1" gp_index="12" osdev_type="1">
      <info name="GPUModel" value="Tesla V100-SXM2-16GB"/></object>
      <object type="OSDev" name="cuda1" gp_index="22" osdev_type="5"><info name="GPUModel" value="V100"/></object></object>
     <object type="PCIDev"><object type="OSDev" name="eth0" osdev_type="2"/><object type="OSDev" name="mlx5_0" osdev_type="3"/></object>
    </object>
   </object>
  </object>
  <object type="Package" os_index="1" nodeset="0x2">
   <object type="NUMANode" os_index="1" cpuset="0xf0" local_memory="1024"/>
   <object type="Bridge" bridge_type="0-1">
    <object type="PCIDev"><object type="OSDev" name="nvml2" gp_index="13" osdev_type="1"><info name="GPUModel" value="V100"/></object></object>
   </object>
   <object type="Bridge" bridge_type="0-1"><object type="PCIDev"/></object>
  </object>
 </object>
 <distances2 name="NUMALatency" type="NUMANode" nbobjs="2" indexing="os"><indexes length="4">0 1 </indexes>
  <u64values length="12">10 21 21 10 </u64values></distances2>
 <distances2 name="NVLinkBandwidth" type="OSDev" nbobjs="3" indexing="gp"><indexes>11 12 13 </indexes>
  <u64values>0 50000 0 50000 0 0 0 0 0 </u64values></distances2>
</topology>
)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string xml_refusal(std::string_view text) {
  const auto reading = read_hwloc_xml(text, "x");
  EXPECT_FALSE(reading.ok());
  return reading ? std::string() : reading.message();
}

TEST(HwlocXml, GivesNumaNodesTreeGpusNicsAndNvLinks) {
  const auto reading = read_hwloc_xml(kXml, "x");
  ASSERT_TRUE(reading.ok()) << reading.message();
  const Machine& machine = reading->machine;
  EXPECT_EQ(reading->node, "n1");
  ASSERT_EQ(machine.numa.size(), 2U);
  EXPECT_EQ(to_text(*machine.numa[0].cpus), "0-3,64");  // words of 32 bits, highest first
  EXPECT_EQ(machine.numa[1].socket, 1);
  EXPECT_EQ(machine.numa[0].distances, (std::vector<NumaDistance>{{0, 10}, {1, 21}}));
  ASSERT_EQ(machine.gpus.size(), 3U);
  EXPECT_EQ(machine.gpus[0].uuid, "GPU-a");
  EXPECT_EQ(machine.gpus[1].model, "Tesla V100-SXM2-16GB");
  EXPECT_EQ(machine.gpus[2].numa, std::vector<int>{1});
  EXPECT_EQ(machine.bridges.size(), 3U);  // the bridge without GPU or NIC is left out
  ASSERT_EQ(machine.nics.size(), 1U);
  EXPECT_EQ(machine.nics[0].name, "mlx5_0");
  ASSERT_EQ(machine.gpu_links.size(), 1U);
  EXPECT_EQ(machine.gpu_links[0].nvlinks, 2);  // 50000 MB/s of 25000 each
  EXPECT_EQ(machine.gpu_links[0].switched, false);
}

TEST(HwlocXml, MistakesNameTheLine) {
  const std::string text(kXml);
  EXPECT_THAT(xml_refusal(text.substr(0, 900)), testing::ContainsRegex("^x:1[0-9]: not XML"));
  EXPECT_THAT(xml_refusal("<a/>"), testing::StartsWith("x:1: no <topology>"));
  EXPECT_THAT(xml_refusal(replaced(text, "version=\"2.0\"", "version=\"1.0\"")),
              testing::StartsWith("x:2: hwloc version \"1.0\""));
  EXPECT_EQ(xml_refusal(replaced(text, "0x1,,0xf", "0xf...f")), "x:5: cpuset \"0xf...f\" is no bitmap");
  EXPECT_EQ(xml_refusal(replaced(text, "os_index=\"1\" cpuset", "os_index=\"0\" cpuset")),
            "x:18: a second NUMA node 0");
  EXPECT_EQ(xml_refusal(replaced(text, "10 21 21 10", "10 21 21")), "x:25: distances of 2 objects have 3 values");
  EXPECT_EQ(xml_refusal(replaced(text, "10 21 21", "10 0 21")), "x:25: NUMA distance 0; allowed: 1..255");
}

}  // namespace
}  // namespace mortise::topology
