// What `mortise topo --draw` draws: places of the boxes, then the picture.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "scheduler/topology/sources/catalogue.h"
#include "scheduler/topology/sources/synthetic.h"
#include "sim/topo_arcs.h"
#include "sim/topo_layout.h"
#include "tests/support/tree.h"
#include "tests/unit/sim/topo_program.h"

namespace mortise::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using Graph = std::shared_ptr<const topology::NodeGraph>;

Graph graph_of(const std::string& synthetic) {
  const auto reading = topology::read_synthetic(synthetic, "test");
  EXPECT_TRUE(reading.ok()) << reading.message();
  return *topology::NodeGraph::build(reading->machine);
}

std::map<std::string, Graph> catalogue() {
  std::map<std::string, Graph> graphs;
  const std::filesystem::path folder = mortise::test::source_dir() + "/config/topologies";
  const auto loaded = topology::Catalogue::load(folder);
  EXPECT_TRUE(loaded.ok()) << loaded.message();
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto machine = loaded->find(entry.path().stem().string());
    EXPECT_TRUE(machine.ok()) << machine.message();
    graphs[entry.path().stem().string()] = *topology::NodeGraph::build((*machine)->machine);
  }
  return graphs;
}

void collect(const Box& box, std::map<int, const Box*>& gpus) {
  if (box.kind == BoxKind::kGpu) gpus[box.device] = &box;
  for (const Box& inner : box.inside) collect(inner, gpus);
}

// Boxes lie in the one around them, beside each other, and below its label.
void expect_apart(const Box& box) {
  // No letter of the font is narrower on average in the words used here.
  constexpr double kNarrowLetter = 5.5;
  for (const std::string& line : box.label) {
    EXPECT_LE(static_cast<double>(line.size()) * kNarrowLetter, box.width) << line;
  }
  if (box.inside.empty()) {
    EXPECT_LE(static_cast<double>(box.label.size()) * kLine, box.height) << box.label.front();
    return;
  }
  EXPECT_EQ(box.label.size(), 1U);
  double left = box.x;
  for (const Box& inner : box.inside) {
    EXPECT_GT(inner.x, left);
    EXPECT_GE(inner.y, box.y + kLine);
    EXPECT_LT(inner.y + inner.height, box.y + box.height);
    left = inner.x + inner.width;
    expect_apart(inner);
  }
  EXPECT_LT(left, box.x + box.width);
}

TEST(TopoLayout, BoxesOfEveryMachineOfTheCatalogueLieApart) {
  const auto graphs = catalogue();
  EXPECT_GE(graphs.size(), 20U);
  for (const auto& [name, graph] : graphs) {
    SCOPED_TRACE(name);
    const Box machine = lay_out(*graph);
    expect_apart(machine);
    std::map<int, const Box*> gpus;
    collect(machine, gpus);
    EXPECT_EQ(static_cast<int>(gpus.size()), graph->gpu_count());
  }
}

TEST(TopoLayout, ANumaNodeWithoutDevicesIsNarrow) {
  const Box machine = lay_out(*graph_of("numa:2 cpu:16x2 memory:128Gi gpu:2@0"));
  ASSERT_EQ(machine.inside.size(), 2U);
  EXPECT_THAT(machine.inside[0].label, testing::ElementsAre("NUMA 0, CPUs 0-15,32-47, 128 GiB"));
  EXPECT_THAT(machine.inside[1].label, testing::ElementsAre("NUMA 1", "CPUs 16-31,48-63", "128 GiB"));
  EXPECT_LT(machine.inside[1].width, machine.inside[0].width);
}

TEST(TopoLayout, TheTitleCountsEveryModel) {
  topology::Machine machine;
  for (int i = 0; i < 3; ++i) {
    machine.gpus.emplace_back().index = i;
    machine.gpus.back().model = i == 1 ? "T4" : "A100";
  }
  machine.nics.emplace_back().name = "NIC0";
  EXPECT_EQ(lay_out(**topology::NodeGraph::build(machine)).label.front(), "2 x A100, 1 x T4, 1 NIC");
  EXPECT_EQ(lay_out(*graph_of("numa:2")).label.front(), "no GPUs, no NICs");
}

TEST(TopoLayout, AListOfAlternatingCpusIsCut) {
  topology::Machine machine;
  machine.gpus.emplace_back().numa = {0};
  topology::NumaNode& node = topology::numa_node(machine, 0);
  node.cpus = *topology::parse_cpu_ranges("0,2,4,6,8,10,12,14,16,18,20,22,24");
  const Box box = lay_out(**topology::NodeGraph::build(machine));
  EXPECT_EQ(box.inside.front().label.front(), "NUMA 0, CPUs 0,2,4,6,8,10,12,14,16,18,...");
}

// Arcs inside another do not cross it, and where the ends of two alternate they cross at an angle.
TEST(TopoArcs, RunInsideEachOtherOrApart) {
  auto graphs = catalogue();
  for (const char* gpus : {"4", "8", "12", "16", "20"}) {
    graphs[gpus] = graph_of("numa:2 gpu:" + std::string(gpus) + " nvlink:all*1");
  }
  for (const auto& [name, graph] : graphs) {
    SCOPED_TRACE(name);
    const Box machine = lay_out(*graph);
    std::map<int, const Box*> boxes;
    collect(machine, boxes);
    const std::vector<Arc> arcs = lay_out_arcs(*graph, boxes);
    for (const Arc& x : arcs) {
      EXPECT_GT(x.from, boxes[x.a]->x);
      EXPECT_LT(x.from, boxes[x.a]->x + boxes[x.a]->width);
      EXPECT_GT(x.to, boxes[x.b]->x);
      EXPECT_LT(x.to, boxes[x.b]->x + boxes[x.b]->width);
      for (const Arc& y : arcs) {
        if (y.from <= x.from || y.from >= x.to) continue;
        const int deeper = y.to < x.to ? x.depth - y.depth : std::abs(x.depth - y.depth);
        EXPECT_GE(deeper, 10);
      }
    }
  }
}

class TopoDraw : public TopoProgram {
 protected:
  std::string draw(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--draw", path("out.svg")});
    EXPECT_EQ(run(arguments).code, kExitDone);
    std::ifstream in(path("out.svg"), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }
};

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST_F(TopoDraw, ShowsEveryDeviceAndLink) {
  const std::string mesh = draw({"--machine", "dgx-1v"});
  for (int gpu = 0; gpu < 8; ++gpu) EXPECT_EQ(count(mesh, ">GPU" + std::to_string(gpu) + "<"), 1U);
  for (int nic = 0; nic < 4; ++nic) EXPECT_EQ(count(mesh, ">NIC" + std::to_string(nic) + "<"), 1U);
  // The mesh has 16 edges; each is a line and its white border.
  EXPECT_EQ(count(mesh, "<path "), 32U);
  EXPECT_THAT(
      mesh, AllOf(HasSubstr("NV1, 25 GB/s each way"), HasSubstr("NV2, 50 GB/s each way"), Not(HasSubstr("NVSwitch"))));

  const std::string switched = draw({"--machine", "dgx-a100"});
  EXPECT_EQ(count(switched, "<path "), 0U);
  EXPECT_EQ(count(switched, "<line "), 8U);
  EXPECT_THAT(switched, HasSubstr("NVSwitch, 12 NVLinks per GPU, 300 GB/s each way"));
}

TEST_F(TopoDraw, NarrowSwitchesHaveTheirWordsBelowEachOther) {
  const std::string picture = draw({"--synthetic", "numa:2 gpu:2 nvswitch:2 model:A100"});
  EXPECT_EQ(count(picture, ">NVSwitch<"), 2U);
  EXPECT_EQ(count(picture, ">12 NVLinks per GPU<"), 2U);
  EXPECT_EQ(count(picture, ">300 GB/s each way<"), 2U);
}

TEST_F(TopoDraw, CountedGpusHaveNoNumber) {
  write("report.json", R"({"kind":"NodeResourceTopology","metadata":{"name":"a"},"zones":[
      {"name":"node-0","type":"Node","resources":[{"name":"nvidia.com/gpu","capacity":2}]},
      {"name":"node-1","type":"Node","resources":[{"name":"nvidia.com/gpu","capacity":2}]}]})");
  const std::string picture = draw({"--node", path("report.json")});
  EXPECT_EQ(count(picture, ">a GPU<"), 4U);
  EXPECT_EQ(count(picture, ">GPU0<"), 0U);
}

TEST_F(TopoDraw, ACascadeWithOneSwitchIsThatSwitch) {
  // What joins the two by PIX is one switch, not several with one below them.
  write("matrix.txt", "\tGPU0\tNIC0\tNUMA Affinity\nGPU0\t X \tPIX\t0\nNIC0\tPIX\t X \t\n");
  const std::string picture = draw({"--matrix", path("matrix.txt")});
  EXPECT_EQ(count(picture, ">PCIe switch<"), 1U);
  EXPECT_EQ(count(picture, ">PCIe switches<"), 0U);
}

}  // namespace
}  // namespace mortise::sim
