// Random machines: graphs hold together, and every text form says the same machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "scheduler/topology/graph.h"
#include "scheduler/topology/machine_json.h"
#include "scheduler/topology/sources/synthetic.h"
#include "scheduler/topology/sources/topo_matrix.h"
#include "tests/support/for_all.h"

namespace mortise::topology {
namespace {

int draw(int least, int most) {
  return *rc::gen::inRange(least, most + 1);
}

Machine machine_of(const std::string& text) {
  const auto reading = read_synthetic(text, "synthetic");
  RC_ASSERT(reading.ok());
  return reading->machine;
}

// Any machine of the synthetic form with up to 16 GPUs.
std::string draw_synthetic() {
  std::string text;
  const auto put = [&](const std::string& name, const std::string& value) {
    text += (text.empty() ? "" : " ") + name + ":" + value;
  };
  int places = 1;
  const auto level = [&](const std::string& name, int most) {
    const int count = draw(0, most);
    if (count > 0) put(name, std::to_string(count));
    places *= std::max(count, 1);
  };
  level("socket", 2);
  level("numa", 2);
  level("bridge", 2);
  level("cascade", 2);
  level("switch", 2);
  const int gpus = draw(1, 16);
  std::string list;
  for (int left = gpus; left > 0;) {
    const int count = draw(1, left);
    list += (list.empty() ? "" : ",") + std::to_string(count) + "@" + std::to_string(draw(0, places - 1));
    left -= count;
  }
  put("gpu", list);
  if (draw(0, 1) == 1) put("nic", std::to_string(draw(1, 2)));
  if (draw(0, 1) == 1) put("cpu", std::to_string(draw(1, 8)) + "x" + std::to_string(draw(1, 2)));
  if (draw(0, 1) == 1) put("memory", std::to_string(draw(1, 512)) + "Gi");
  if (draw(0, 1) == 1) put("distance", std::to_string(draw(11, 20)) + "," + std::to_string(draw(21, 40)));
  const char* models[] = {"", "V100", "A100", "H100", "Quadro-Z"};
  const std::string model = models[draw(0, 4)];
  if (!model.empty()) put("model", model);
  const int links = draw(0, 2);
  if (links == 1 && gpus > 1) {
    std::set<std::pair<int, int>> pairs;
    for (int i = 0; i < draw(1, 20); ++i) {
      const int a = draw(0, gpus - 1);
      const int b = draw(0, gpus - 1);
      if (a != b) pairs.emplace(std::min(a, b), std::max(a, b));
    }
    std::string value;
    for (const auto& [a, b] : pairs) {
      value +=
          (value.empty() ? "" : ",") + std::to_string(a) + "-" + std::to_string(b) + "*" + std::to_string(draw(1, 4));
    }
    if (!value.empty()) put("nvlink", value);
  } else if (links == 2) {
    put("nvlink", std::to_string(draw(1, 6)));
    put("nvswitch", "1");
  }
  return text;
}

TEST(GraphProperty, GraphsOfRandomMachinesHoldTogether) {
  test::for_all(2000, [] {
    const std::string text = draw_synthetic();
    const auto graph = NodeGraph::build(machine_of(text));
    RC_ASSERT(graph.ok());
    const Status status = (*graph)->check();
    RC_ASSERT(status.ok());
    // Groups of NVLinks are a partition of the GPUs that have some.
    std::set<int> seen;
    for (const auto& domain : (*graph)->nvlink_domains()) {
      RC_ASSERT(domain.size() >= 2U);
      for (const int gpu : domain) RC_ASSERT(seen.insert(gpu).second);
    }
  });
}

TEST(GraphProperty, JsonAndSyntheticTextReadBackAsTheSameMachine) {
  test::for_all(2000, [] {
    const Machine machine = machine_of(draw_synthetic());
    const auto json = read_machine_json(to_json_text(machine), "json");
    RC_ASSERT(json.ok());
    RC_ASSERT(json->machine == machine);
    const auto text = to_synthetic(machine);
    if (text) RC_ASSERT(machine_of(*text) == machine);
  });
}

// Renaming the GPUs renames the answers and changes nothing else.
TEST(GraphProperty, PermutedMachinesHavePermutedGraphs) {
  test::for_all(1000, [] {
    const Machine machine = machine_of(draw_synthetic());
    const int gpus = static_cast<int>(machine.gpus.size());
    std::vector<int> place(static_cast<std::size_t>(gpus));
    std::iota(place.begin(), place.end(), 0);
    for (int i = gpus - 1; i > 0; --i)
      std::swap(place[static_cast<std::size_t>(i)], place[static_cast<std::size_t>(draw(0, i))]);
    const auto moved = [&](int gpu) { return place[static_cast<std::size_t>(gpu)]; };
    Machine permuted = machine;
    for (int i = 0; i < gpus; ++i) {
      Gpu& gpu = permuted.gpus[static_cast<std::size_t>(moved(i))];
      gpu = machine.gpus[static_cast<std::size_t>(i)];
      gpu.index = moved(i);
    }
    for (GpuLink& link : permuted.gpu_links) {
      const int a = moved(link.a);
      const int b = moved(link.b);
      link.a = std::min(a, b);
      link.b = std::max(a, b);
    }
    std::sort(permuted.gpu_links.begin(), permuted.gpu_links.end());
    const auto one = NodeGraph::build(machine);
    const auto two = NodeGraph::build(permuted);
    RC_ASSERT(one.ok() && two.ok());
    for (int a = 0; a < gpus; ++a) {
      for (int b = 0; b < gpus; ++b) {
        if (a == b) continue;
        RC_ASSERT((*one)->link(a, b) == (*two)->link(moved(a), moved(b)));
        RC_ASSERT((*one)->bandwidth().at(a, b) == (*two)->bandwidth().at(moved(a), moved(b)));
        RC_ASSERT((*one)->nvlink_path_mb_per_s(a, b) == (*two)->nvlink_path_mb_per_s(moved(a), moved(b)));
      }
    }
  });
}

// Writes the machine the way nvidia-smi prints it.
std::string matrix_text(const NodeGraph& graph) {
  std::string text;
  for (const Gpu& gpu : graph.machine().gpus) text += "\tGPU" + std::to_string(gpu.index);
  text += "\tCPU Affinity\tNUMA Affinity\n";
  for (int a = 0; a < graph.gpu_count(); ++a) {
    const Gpu& gpu = graph.machine().gpus[static_cast<std::size_t>(a)];
    text += "GPU" + std::to_string(gpu.index);
    for (int b = 0; b < graph.gpu_count(); ++b) text += "\t" + (a == b ? " X " : to_text(graph.link(a, b)));
    text += "\t" + (gpu.cpus ? to_text(*gpu.cpus) : "N/A") + "\t" + std::to_string(gpu.numa.front()) + "\n";
  }
  return text;
}

TEST(GraphProperty, MatricesOfRandomMachinesReadBackAsTheirLinks) {
  test::for_all(1000, [] {
    const auto graph = NodeGraph::build(machine_of(draw_synthetic()));
    RC_ASSERT(graph.ok());
    const auto reading = read_topo_matrix(matrix_text(**graph), "matrix");
    RC_ASSERT(reading.ok());
    RC_ASSERT(reading->notes.empty());
    const auto again = NodeGraph::build(reading->machine);
    RC_ASSERT(again.ok());
    RC_ASSERT((*again)->check().ok());
    for (int a = 0; a < (*graph)->gpu_count(); ++a) {
      for (int b = a + 1; b < (*graph)->gpu_count(); ++b) {
        RC_ASSERT(to_text((*again)->link(a, b)) == to_text((*graph)->link(a, b)));
      }
      const auto at = static_cast<std::size_t>(a);
      RC_ASSERT((*again)->machine().gpus[at].numa == (*graph)->machine().gpus[at].numa);
      RC_ASSERT((*again)->machine().gpus[at].cpus == (*graph)->machine().gpus[at].cpus);
    }
  });
}

}  // namespace
}  // namespace mortise::topology
