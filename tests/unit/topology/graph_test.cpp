#include "scheduler/topology/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/topology/bandwidth.h"
#include "scheduler/topology/sources/synthetic.h"

namespace mortise::topology {
namespace {

Machine machine_of(std::string_view text) {
  auto reading = read_synthetic(text, "test");
  EXPECT_TRUE(reading.ok()) << reading.message();
  return reading ? std::move(reading->machine) : Machine{};
}

std::shared_ptr<const NodeGraph> graph_of(const Machine& machine) {
  auto graph = NodeGraph::build(machine);
  EXPECT_TRUE(graph.ok()) << graph.message();
  EXPECT_TRUE((*graph)->check().ok()) << (*graph)->check().message();
  return *graph;
}

// Four V100 in a row over single and double NVLinks, and one without: 0 =2= 1 -1- 2 =2= 3, 4 alone.
constexpr std::string_view kChain = "numa:2 gpu:3,2 model:V100 nvlink:0-1*2,1-2,2-3*2";

TEST(NodeGraph, DomainsAreGpusJoinedByNvLinksAlsoOverOthers) {
  EXPECT_EQ(graph_of(machine_of(kChain))->nvlink_domains(), (std::vector<std::vector<int>>{{0, 1, 2, 3}}));
  EXPECT_EQ(graph_of(machine_of("gpu:4 nvlink:0-1,2-3"))->nvlink_domains(),
            (std::vector<std::vector<int>>{{0, 1}, {2, 3}}));
  EXPECT_TRUE(graph_of(machine_of("gpu:4"))->nvlink_domains().empty());
}

TEST(NodeGraph, PathsAreAsWideAsTheirNarrowestLink) {
  const auto graph = graph_of(machine_of(kChain));
  EXPECT_EQ(graph->nvlink_path_mb_per_s(0, 1), 50000);
  EXPECT_EQ(graph->nvlink_path_mb_per_s(0, 3), 25000);  // over the single link 1-2
  EXPECT_EQ(graph->nvlink_path_mb_per_s(0, 4), 0);
}

TEST(NodeGraph, PathsTakeTheWiderWayRound) {
  // A single link 0-2 beside the double ones over 1.
  EXPECT_EQ(graph_of(machine_of("gpu:3 model:V100 nvlink:0-1*2,1-2*2,0-2"))->nvlink_path_mb_per_s(0, 2), 50000);
}

TEST(NodeGraph, DirectBandwidthFollowsLinkAndModel) {
  const auto graph = graph_of(machine_of(kChain));
  EXPECT_EQ(graph->mb_per_s(0, 1), 50000);  // two links of 25 GB/s
  EXPECT_EQ(graph->mb_per_s(0, 2), 11000);  // PHB, PCIe generation 3
  EXPECT_EQ(graph->mb_per_s(0, 4), 9000);   // SYS
  EXPECT_EQ(graph_of(machine_of("gpu:2 model:A6000 nvlink:0-1*4"))->mb_per_s(0, 1), 56248);
  EXPECT_EQ(graph_of(machine_of("bridge:2 gpu:1 model:H100"))->mb_per_s(0, 1), 40000);  // NODE, generation 5
}

TEST(NodeGraph, WithoutAModelBandwidthIsNotKnownButRanks) {
  const auto graph = graph_of(machine_of("numa:2 gpu:2 nvlink:0-1"));
  EXPECT_EQ(graph->mb_per_s(0, 1), std::nullopt);
  EXPECT_GT(graph->bandwidth().at(0, 1), graph->bandwidth().at(2, 3));
  EXPECT_GT(graph->bandwidth().at(2, 3), graph->bandwidth().at(0, 2));
}

TEST(NodeGraph, SwitchedGpusAreOneDomainAtTheWidthOfTheirPorts) {
  const auto graph = graph_of(machine_of("numa:2 gpu:4 model:A100 nvswitch:1"));
  EXPECT_EQ(graph->nvlink_domains().size(), 1U);
  EXPECT_TRUE(graph->link(0, 7).switched);
  EXPECT_EQ(graph->mb_per_s(0, 7), 300000);  // 12 ports of 25 GB/s
  EXPECT_EQ(graph->nvlink_path_mb_per_s(0, 7), 300000);
  // The plugin sees no NVLinks behind a switch: PHB 30 in a NUMA node, SYS 10 across.
  EXPECT_EQ(graph->plugin_scores().at(0, 1), 30);
  EXPECT_EQ(graph->plugin_scores().at(0, 7), 10);
}

// With NV# alone a source does not say whether there is a switch: more links than ports give it away.
TEST(NodeGraph, MoreLinksThanPortsMeansASwitch) {
  const auto nvlinks = [](int gpus, int links) {
    Machine machine;
    for (int i = 0; i < gpus; ++i)
      machine.gpus.push_back(
          {.index = i, .model = "V100", .uuid = {}, .bus_id = {}, .numa = {}, .cpus = {}, .bridge = {}});
    for (int a = 0; a < gpus; ++a) {
      for (int b = a + 1; b < gpus; ++b) machine.gpu_links.push_back({a, b, LinkClass::kUnknown, links, {}});
    }
    return machine;
  };
  EXPECT_FALSE(graph_of(nvlinks(4, 2))->link(0, 1).switched);  // 3 x 2 = 6, the ports of a V100
  EXPECT_TRUE(graph_of(nvlinks(5, 2))->link(0, 1).switched);   // 4 x 2 = 8
  EXPECT_TRUE(graph_of(nvlinks(4, 6))->link(0, 1).switched);
}

TEST(NodeGraph, ALinkThatTheModelCannotHaveIsRefused) {
  const auto graph = NodeGraph::build(machine_of("gpu:2 model:T4 nvlink:0-1*4"));
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.message(), "GPU 0 has a link NV4, but T4 has 0 NVLinks");
}

TEST(NodeGraph, ClassesComeFromTheTree) {
  const auto graph = graph_of(machine_of("numa:2 bridge:2 cascade:2 switch:2 gpu:2"));
  const auto link = [&](int a, int b) { return to_text(graph->link(a, b)); };
  EXPECT_EQ(link(0, 1), "PIX");   // one switch
  EXPECT_EQ(link(0, 2), "PXB");   // two switches of a cascade
  EXPECT_EQ(link(0, 4), "PHB");   // two cascades of a host bridge
  EXPECT_EQ(link(0, 8), "NODE");  // two host bridges
  EXPECT_EQ(link(0, 16), "SYS");
}

// A switch that is not drawn as one: its upstream port holds downstream ports, which hold devices.
TEST(NodeGraph, PortsOfOneSwitchAreOneSwitch) {
  Machine machine;
  machine.bridges = {{BridgeKind::kHostBridge, -1, {}, {}}, {BridgeKind::kSwitch, 0, {}, {}},
                     {BridgeKind::kSwitch, 1, {}, {}},      {BridgeKind::kSwitch, 1, {}, {}},
                     {BridgeKind::kSwitch, 3, {}, {}},      {BridgeKind::kSwitch, 4, {}, {}}};
  for (int i = 0; i < 3; ++i) {
    Gpu gpu;
    gpu.index = i;
    gpu.bridge = i == 0 ? 2 : i == 1 ? 3 : 5;  // below a port; below another; below a second switch behind that one
    machine.gpus.push_back(gpu);
  }
  const auto graph = graph_of(machine);
  EXPECT_EQ(graph->link(0, 1).pcie, LinkClass::kPix);
  EXPECT_EQ(graph->link(0, 2).pcie, LinkClass::kPxb);
}

TEST(NodeGraph, HiddenClassesFollowFromTheWaysToNics) {
  Machine machine;
  for (int i = 0; i < 4; ++i)
    machine.gpus.push_back({.index = i, .model = {}, .uuid = {}, .bus_id = {}, .numa = {}, .cpus = {}, .bridge = {}});
  machine.nics = {{.name = "mlx5_0", .device = {}, .bus_id = {}, .numa = {}, .bridge = {}}};
  machine.gpu_links = {{0, 1, LinkClass::kUnknown, 1, false}, {0, 2, LinkClass::kUnknown, 2, false}};
  machine.nic_links = {
      {0, 0, LinkClass::kPix}, {1, 0, LinkClass::kPix}, {2, 0, LinkClass::kPhb}, {3, 0, LinkClass::kSys}};
  const auto graph = graph_of(machine);
  EXPECT_EQ(graph->plugin_scores().at(0, 1), 150);  // both PIX to the NIC: PIX 50, one NVLink 100
  EXPECT_EQ(graph->plugin_scores().at(0, 2), 230);  // PIX and PHB: PHB 30, two NVLinks 200
  EXPECT_EQ(graph->plugin_scores().at(0, 3), 10);
  EXPECT_EQ(to_text(graph->link(0, 3)), "");  // known to rank, but not said
  EXPECT_EQ(graph->nearest_nics(2), std::vector<int>{0});
  // The classes give a host bridge with GPUs 0 to 2 and the NIC, and in it a switch with GPUs 0 and 1 and the NIC.
  ASSERT_EQ(graph->bridges().size(), 3U);
  EXPECT_EQ(graph->gpu_bridge(0), graph->nic_bridge(0));
  EXPECT_EQ(graph->gpu_bridge(2), 0);
  EXPECT_EQ(graph->gpu_bridge(3), std::nullopt);
}

TEST(NodeGraph, NearestNicsAreAllOfTheNearestClass) {
  const auto graph = graph_of(machine_of("numa:2 switch:2 gpu:2 nic:2"));
  EXPECT_EQ(graph->nearest_nics(0), (std::vector<int>{0, 1}));
  EXPECT_EQ(graph->nearest_nics(7), (std::vector<int>{6, 7}));
  EXPECT_EQ(graph->nic_link(0, 2), LinkClass::kPhb);
}

TEST(NodeGraph, EdgesCarryNominalBandwidth) {
  const auto graph = graph_of(machine_of("socket:2 numa:1 gpu:1 model:A100 nvlink:0-1*4"));
  int nvlinks = 0;
  int pcie = 0;
  for (const Edge& edge : graph->edges()) {
    if (edge.kind == EdgeKind::kNvLink) {
      EXPECT_EQ(edge.mb_per_s, 100000);
      ++nvlinks;
    }
    if (edge.kind == EdgeKind::kPcie && edge.mb_per_s == 24000) ++pcie;  // x16 of generation 4
  }
  EXPECT_EQ(nvlinks, 1);
  EXPECT_EQ(pcie, 2);
  // 2 sockets, 2 NUMA nodes, 2 host bridges, 2 GPUs.
  EXPECT_EQ(graph->vertices().size(), 8U);
}

TEST(NodeGraph, PartsThatDoNotFitAreRefused) {
  const auto refused = [](const auto& change) {
    Machine machine = machine_of("numa:2 gpu:2 nic:1 cpu:4");
    change(machine);
    const auto graph = NodeGraph::build(std::move(machine));
    EXPECT_FALSE(graph.ok());
    return graph ? std::string() : graph.message();
  };
  EXPECT_EQ(refused([](Machine& m) { m.gpus[1].index = 0; }), "GPU 0 is out of order or named twice");
  EXPECT_EQ(refused([](Machine& m) { m.gpus[0].bridge = 9; }), "GPU 0 hangs on a bridge that is not there");
  EXPECT_EQ(refused([](Machine& m) { m.bridges[1].parent = 1; }), "bridge 1 is a host bridge with a parent");
  EXPECT_EQ(refused([](Machine& m) {
              m.gpu_links = {{1, 0, LinkClass::kPix, 0, {}}};
            }),
            "link 1-0 does not join two GPUs");
  EXPECT_EQ(refused([](Machine& m) { m.nics[1].name = "NIC0"; }), "NIC \"NIC0\" is named twice");
  EXPECT_EQ(refused([](Machine& m) {
              m.numa[1].cpus = CpuRanges{{3, 9}};
            }),
            "NUMA node 1 shares CPUs with NUMA node 0");
  EXPECT_EQ(refused([](Machine& m) {
              m.numa[1].distances = {{7, 10}};
            }),
            "NUMA node 1: distance to 7, which is no NUMA node of the machine");
  EXPECT_EQ(refused([](Machine& m) { m.gpus[0].uuid = m.gpus[1].uuid = "GPU-1"; }),
            "GPU 1 has the UUID of another GPU");
}

TEST(GraphTable, AlikeMachinesShareAGraphWhateverTheirUuids) {
  Machine one = machine_of("numa:2 gpu:2 nvlink:0-1");
  Machine two = one;
  one.gpus[0].uuid = "GPU-a";
  two.gpus[0].uuid = "GPU-b";
  two.gpus[1].bus_id = "0000:01:00.0";
  GraphTable table;
  const auto graph = table.intern(one);
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(table.intern(two)->get(), graph->get());
  EXPECT_EQ(table.size(), 1U);
  two.gpu_links[0].nvlinks = 2;
  EXPECT_NE(table.intern(two)->get(), graph->get());
  EXPECT_EQ(table.size(), 2U);
}

TEST(GpuModels, NamesOfVendorsAndTracesAreFound) {
  const auto name = [](std::string_view text) {
    const GpuModel* model = find_gpu_model(text);
    return model == nullptr ? std::string_view() : model->name;
  };
  EXPECT_EQ(name("NVIDIA-A100-SXM4-40GB"), "A100");
  EXPECT_EQ(name("NVIDIA A10"), "A10");
  EXPECT_EQ(name("NVIDIA-A10G"), "A10");
  EXPECT_EQ(name("Tesla V100-SXM2-16GB"), "V100");
  EXPECT_EQ(name("V100M32"), "V100");
  EXPECT_EQ(name("NVIDIA-H200"), "H200");
  EXPECT_EQ(name("NVIDIA-H20"), "H20");
  EXPECT_EQ(name("NVIDIA-GB200"), "GB200");
  EXPECT_EQ(name("NVIDIA GeForce RTX 4090"), "4090");
  EXPECT_EQ(name("nvidia-l40s"), "L40S");
  EXPECT_EQ(name("NVIDIA-RTX-A6000"), "A6000");
  EXPECT_EQ(name("G2"), "");
  EXPECT_EQ(name("A1000"), "");
  EXPECT_EQ(name(""), "");
}

}  // namespace
}  // namespace mortise::topology
