#include "scheduler/topology/graph.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <set>
#include <utility>

#include "scheduler/topology/bandwidth.h"
#include "scheduler/topology/pcie_tree.h"

namespace mortise::topology {
namespace {

std::int64_t direct_mb_per_s(const GpuModel& a, const GpuModel& b, const PairLink& link, LinkClass pcie) {
  if (link.nvlinks > 0) return link.nvlinks * std::min(a.nvlink_mb_per_s, b.nvlink_mb_per_s);
  return pcie_mb_per_s(std::min(a.pcie_gen, b.pcie_gen), pcie);
}

// go-gpuallocator's scale (internal/links): the farther, the less.
std::int64_t pcie_score(LinkClass link) {
  switch (link) {
    case LinkClass::kPix:
      return 50;
    case LinkClass::kPxb:
      return 40;
    case LinkClass::kPhb:
      return 30;
    case LinkClass::kNode:
      return 20;
    default:
      return 10;
  }
}

bool share(const std::vector<int>& a, const std::vector<int>& b) {
  return std::any_of(a.begin(), a.end(), [&](int id) { return std::find(b.begin(), b.end(), id) != b.end(); });
}

}  // namespace

std::string to_text(const PairLink& link) {
  if (link.nvlinks > 0) return "NV" + std::to_string(link.nvlinks);
  return std::string(to_text(link.pcie));
}

Result<std::shared_ptr<const NodeGraph>> NodeGraph::build(Machine machine) {
  add_named_numa(machine);
  if (const Status status = mortise::topology::check(machine); !status) return status.error();
  const std::shared_ptr<NodeGraph> graph(new NodeGraph());
  graph->machine_ = std::move(machine);
  graph->link_nics();
  graph->link_pairs();
  if (const Status status = graph->check_models(); !status) return status.error();
  graph->find_bridges();
  graph->fill_matrices();
  graph->list_vertices();
  graph->find_paths();
  return std::shared_ptr<const NodeGraph>(graph);
}

const PairLink& NodeGraph::link(int a, int b) const {
  assert(a >= 0 && a < gpu_count() && b >= 0 && b < gpu_count());
  return links_[static_cast<std::size_t>(a) * machine_.gpus.size() + static_cast<std::size_t>(b)];
}

std::optional<std::int64_t> NodeGraph::mb_per_s(int a, int b) const {
  const GpuModel* model_a = find_gpu_model(gpu(a).model);
  const GpuModel* model_b = find_gpu_model(gpu(b).model);
  if (model_a == nullptr || model_b == nullptr) return std::nullopt;
  const std::int64_t value = direct_mb_per_s(*model_a, *model_b, link(a, b), link(a, b).pcie);
  if (value == 0) return std::nullopt;
  return value;
}

LinkClass NodeGraph::nic_link(int gpu, int nic) const {
  return nic_links_[static_cast<std::size_t>(gpu) * machine_.nics.size() + static_cast<std::size_t>(nic)];
}

void NodeGraph::link_nics() {
  const std::size_t nics = machine_.nics.size();
  nic_links_.assign(machine_.gpus.size() * nics, LinkClass::kUnknown);
  for (std::size_t g = 0; g < machine_.gpus.size(); ++g) {
    for (std::size_t n = 0; n < nics; ++n) {
      nic_links_[g * nics + n] =
          tree_class(machine_.bridges, place_of(machine_, machine_.gpus[g]), place_of(machine_, machine_.nics[n]));
    }
  }
  for (const NicLink& link : machine_.nic_links) {
    if (link.pcie == LinkClass::kUnknown) continue;
    nic_links_[static_cast<std::size_t>(link.gpu) * nics + static_cast<std::size_t>(link.nic)] = link.pcie;
  }
  for (std::size_t g = 0; g < machine_.gpus.size(); ++g) {
    const auto row = std::span(nic_links_).subspan(g * nics, nics);
    std::vector<int> nearest;
    const LinkClass least = row.empty() ? LinkClass::kUnknown : *std::min_element(row.begin(), row.end());
    for (std::size_t n = 0; n < nics && least != LinkClass::kUnknown; ++n) {
      if (row[n] == least) nearest.push_back(static_cast<int>(n));
    }
    nearest_nics_.push_back(std::move(nearest));
  }
}

// Distances in a tree are an ultrametric: of the three between two GPUs and a NIC, the two largest are equal. So the
// larger of the ways to a NIC bounds the way between the GPUs, and is it where the two differ.
LinkClass NodeGraph::likely_class(int a, int b) const {
  LinkClass best = LinkClass::kUnknown;
  for (int nic = 0; nic < static_cast<int>(machine_.nics.size()); ++nic) {
    best = std::min(best, std::max(nic_link(a, nic), nic_link(b, nic)));
  }
  const Gpu& x = gpu(a);
  const Gpu& y = gpu(b);
  const DevicePlace place_x = place_of(machine_, x);
  const DevicePlace place_y = place_of(machine_, y);
  if (!place_x.numa.empty() && !place_y.numa.empty()) {
    return std::min(best, share(place_x.numa, place_y.numa) ? LinkClass::kNode : LinkClass::kSys);
  }
  if (x.cpus && y.cpus) {
    return std::min(best, overlap(*x.cpus, *y.cpus) ? LinkClass::kNode : LinkClass::kSys);
  }
  return best;
}

void NodeGraph::link_pairs() {
  const std::size_t gpus = machine_.gpus.size();
  std::vector<int> ports_used(gpus, 0);
  for (const GpuLink& link : machine_.gpu_links) {
    ports_used[static_cast<std::size_t>(link.a)] += link.nvlinks;
    ports_used[static_cast<std::size_t>(link.b)] += link.nvlinks;
  }
  // More links than a GPU has ports: each of them is counted once per peer, so there is a switch.
  const auto over_ports = [&](int at) {
    return ports_used[static_cast<std::size_t>(at)] > known_or_assumed_model(gpu(at).model).nvlinks;
  };
  links_.assign(gpus * gpus, PairLink{});
  for (int a = 0; a < gpu_count(); ++a) {
    for (int b = a + 1; b < gpu_count(); ++b) {
      links_[static_cast<std::size_t>(a) * gpus + static_cast<std::size_t>(b)].pcie =
          tree_class(machine_.bridges, place_of(machine_, gpu(a)), place_of(machine_, gpu(b)));
    }
  }
  for (const GpuLink& link : machine_.gpu_links) {
    PairLink& pair = links_[static_cast<std::size_t>(link.a) * gpus + static_cast<std::size_t>(link.b)];
    pair.nvlinks = link.nvlinks;
    pair.switched = link.nvlinks > 0 && link.switched.value_or(over_ports(link.a) || over_ports(link.b));
    if (link.pcie != LinkClass::kUnknown) pair.pcie = link.pcie;
  }
  for (int a = 0; a < gpu_count(); ++a) {
    for (int b = a + 1; b < gpu_count(); ++b) {
      PairLink& pair = links_[static_cast<std::size_t>(a) * gpus + static_cast<std::size_t>(b)];
      pair.likely = pair.pcie != LinkClass::kUnknown ? pair.pcie : likely_class(a, b);
      links_[static_cast<std::size_t>(b) * gpus + static_cast<std::size_t>(a)] = pair;
    }
  }
}

// Bandwidth comes from the model: a wrong one would give wrong numbers that look right.
Status NodeGraph::check_models() const {
  for (int a = 0; a < gpu_count(); ++a) {
    const GpuModel* model = find_gpu_model(gpu(a).model);
    for (int b = 0; b < gpu_count() && model != nullptr; ++b) {
      if (link(a, b).nvlinks <= model->nvlinks) continue;
      return Error{"GPU " + std::to_string(gpu(a).index) + " has a link " + to_text(link(a, b)) + ", but " +
                   std::string(model->name) + " has " + std::to_string(model->nvlinks) + " NVLinks"};
    }
  }
  return ok_status();
}

void NodeGraph::find_bridges() {
  if (!machine_.bridges.empty()) {
    bridges_ = machine_.bridges;
    for (const Gpu& gpu : machine_.gpus) gpu_bridge_.push_back(gpu.bridge);
    for (const Nic& nic : machine_.nics) nic_bridge_.push_back(nic.bridge);
    return;
  }
  const std::size_t gpus = machine_.gpus.size();
  const std::size_t devices = gpus + machine_.nics.size();
  std::vector<LinkClass> classes(devices * devices, LinkClass::kUnknown);
  std::vector<std::vector<int>> numa(devices);
  for (std::size_t g = 0; g < gpus; ++g) {
    numa[g] = machine_.gpus[g].numa;
    for (std::size_t other = 0; other < devices; ++other) {
      if (other == g) continue;
      const LinkClass link =
          other < gpus ? links_[g * gpus + other].likely : nic_links_[g * machine_.nics.size() + (other - gpus)];
      classes[g * devices + other] = classes[other * devices + g] = link;
    }
  }
  for (std::size_t n = 0; n < machine_.nics.size(); ++n) numa[gpus + n] = machine_.nics[n].numa;
  InferredTree tree = infer_tree(classes, numa);
  bridges_ = std::move(tree.bridges);
  const auto split = tree.device_bridge.begin() + static_cast<std::ptrdiff_t>(gpus);
  gpu_bridge_.assign(tree.device_bridge.begin(), split);
  nic_bridge_.assign(split, tree.device_bridge.end());
}

void NodeGraph::fill_matrices() {
  bandwidth_ = PairMatrix(gpu_count());
  scores_ = PairMatrix(gpu_count());
  for (int a = 0; a < gpu_count(); ++a) {
    for (int b = a + 1; b < gpu_count(); ++b) {
      const PairLink& pair = link(a, b);
      const LinkClass pcie = pair.likely == LinkClass::kUnknown ? LinkClass::kSys : pair.likely;
      bandwidth_.set(
          a, b,
          direct_mb_per_s(known_or_assumed_model(gpu(a).model), known_or_assumed_model(gpu(b).model), pair, pcie));
      scores_.set(a, b, pcie_score(pair.likely) + (pair.switched ? 0 : 100 * pair.nvlinks));
    }
  }
}

Result<std::shared_ptr<const NodeGraph>> GraphTable::intern(const Machine& machine) {
  Machine key = without_identity(machine);
  const auto found = graphs_.find(key);
  if (found != graphs_.end()) return found->second;
  auto graph = NodeGraph::build(key);
  if (!graph) return graph.error();
  return graphs_.emplace(std::move(key), *graph).first->second;
}

}  // namespace mortise::topology
