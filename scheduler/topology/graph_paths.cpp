// The parts of NodeGraph that walk the graph: vertices, edges, NVLink domains and widest paths.
#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/connected_components.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <limits>
#include <map>

#include "scheduler/topology/bandwidth.h"
#include "scheduler/topology/graph.h"

namespace mortise::topology {
namespace {

using Weight = boost::property<boost::edge_weight_t, std::int64_t>;
using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, boost::no_property, Weight>;

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

// Members of each component with two or more of them, ordered by their first.
std::vector<std::vector<int>> components(const Graph& graph, int count) {
  std::vector<int> component(boost::num_vertices(graph));
  boost::connected_components(graph, component.data());
  std::map<int, std::vector<int>> members;
  for (int i = 0; i < count; ++i) members[component[static_cast<std::size_t>(i)]].push_back(i);
  std::vector<std::vector<int>> sets;
  for (auto& [id, list] : members) {
    if (list.size() >= 2) sets.push_back(std::move(list));
  }
  std::sort(sets.begin(), sets.end());
  return sets;
}

// Dijkstra's algorithm with min for + and > for <: the widest way from `source` to everywhere; 0 where there is none.
std::vector<std::int64_t> widest_from(const Graph& graph, std::size_t source) {
  std::vector<std::int64_t> width(boost::num_vertices(graph));
  boost::dijkstra_shortest_paths(graph, source,
                                 boost::distance_map(width.data())
                                     .distance_compare([](std::int64_t a, std::int64_t b) { return a > b; })
                                     .distance_combine([](std::int64_t a, std::int64_t b) { return std::min(a, b); })
                                     .distance_inf(std::int64_t{0})
                                     .distance_zero(kUnlimited));
  return width;
}

// The GPUs stand together, in their order.
int first_gpu_in(const std::vector<Vertex>& vertices) {
  const auto is_gpu = [](const Vertex& vertex) { return vertex.kind == VertexKind::kGpu; };
  return static_cast<int>(std::find_if(vertices.begin(), vertices.end(), is_gpu) - vertices.begin());
}

std::int64_t per_link(const Gpu& gpu) {
  return known_or_assumed_model(gpu.model).nvlink_mb_per_s;
}

}  // namespace

void NodeGraph::list_vertices() {
  std::map<int, int> sockets;
  for (const NumaNode& node : machine_.numa) {
    if (node.socket) sockets.emplace(*node.socket, 0);
  }
  const auto add = [&](VertexKind kind, int id) { vertices_.push_back({kind, id}); };
  for (const auto& [id, unused] : sockets) add(VertexKind::kSocket, id);
  for (std::size_t i = 0; i < machine_.numa.size(); ++i) add(VertexKind::kNuma, static_cast<int>(i));
  for (std::size_t i = 0; i < bridges_.size(); ++i) {
    const bool host = bridges_[i].kind == BridgeKind::kHostBridge;
    add(host ? VertexKind::kHostBridge : VertexKind::kSwitch, static_cast<int>(i));
  }
  for (int i = 0; i < gpu_count(); ++i) add(VertexKind::kGpu, i);
  for (std::size_t i = 0; i < machine_.nics.size(); ++i) add(VertexKind::kNic, static_cast<int>(i));
  list_containment();
  list_nvlinks();
}

void NodeGraph::list_containment() {
  std::map<std::pair<VertexKind, int>, int> at;
  std::map<int, int> numa_position;
  std::vector<int> sockets;
  for (std::size_t v = 0; v < vertices_.size(); ++v) {
    const VertexKind kind = vertices_[v].kind == VertexKind::kSwitch ? VertexKind::kHostBridge : vertices_[v].kind;
    at[{kind, vertices_[v].id}] = static_cast<int>(v);
    if (kind == VertexKind::kSocket) sockets.push_back(static_cast<int>(v));
  }
  const auto join = [&](int from, int to, EdgeKind kind, std::optional<std::int64_t> width) {
    edges_.push_back({from, to, kind, 0, width});
  };
  for (std::size_t a = 0; a < sockets.size(); ++a) {
    for (std::size_t b = a + 1; b < sockets.size(); ++b) join(sockets[a], sockets[b], EdgeKind::kSocketLink, {});
  }
  for (std::size_t i = 0; i < machine_.numa.size(); ++i) {
    const int numa = at[{VertexKind::kNuma, static_cast<int>(i)}];
    numa_position[machine_.numa[i].id] = numa;
    if (machine_.numa[i].socket) join(at[{VertexKind::kSocket, *machine_.numa[i].socket}], numa, EdgeKind::kMemory, {});
  }
  const auto hang = [&](int vertex, std::optional<int> bridge, const std::vector<int>& numa,
                        std::optional<std::int64_t> width) {
    if (bridge) {
      join(at[{VertexKind::kHostBridge, *bridge}], vertex, EdgeKind::kPcie, width);
    } else {
      for (const int id : numa) join(numa_position[id], vertex, EdgeKind::kPcie, width);
    }
  };
  for (std::size_t i = 0; i < bridges_.size(); ++i) {
    const Bridge& bridge = bridges_[i];
    const int vertex = at[{VertexKind::kHostBridge, static_cast<int>(i)}];
    hang(vertex, bridge.parent < 0 ? std::nullopt : std::optional(bridge.parent), bridge.numa, {});
  }
  for (int i = 0; i < gpu_count(); ++i) {
    const GpuModel* model = find_gpu_model(gpu(i).model);
    std::optional<std::int64_t> width;
    if (model != nullptr) width = pcie_mb_per_s(model->pcie_gen, LinkClass::kPix);
    hang(at[{VertexKind::kGpu, i}], gpu_bridge(i), gpu(i).numa, width);
  }
  for (std::size_t i = 0; i < machine_.nics.size(); ++i) {
    const int nic = static_cast<int>(i);
    hang(at[{VertexKind::kNic, nic}], nic_bridge(nic), machine_.nics[i].numa, {});
  }
}

void NodeGraph::list_nvlinks() {
  const int first_gpu = first_gpu_in(vertices_);
  const auto join = [&](int from, int to, int nvlinks, std::int64_t each, bool known) {
    Edge edge{first_gpu + from, to, EdgeKind::kNvLink, nvlinks, std::nullopt};
    if (known) edge.mb_per_s = nvlinks * each;
    edges_.push_back(edge);
  };
  Graph fabrics(machine_.gpus.size());
  for (int a = 0; a < gpu_count(); ++a) {
    for (int b = a + 1; b < gpu_count(); ++b) {
      const PairLink& pair = link(a, b);
      if (pair.nvlinks == 0) continue;
      if (pair.switched) {
        boost::add_edge(static_cast<std::size_t>(a), static_cast<std::size_t>(b), fabrics);
      } else {
        join(a, first_gpu + b, pair.nvlinks, bandwidth_.at(a, b) / pair.nvlinks, mb_per_s(a, b).has_value());
      }
    }
  }
  int fabric = 0;
  for (const std::vector<int>& gpus : components(fabrics, gpu_count())) {
    vertices_.push_back({VertexKind::kNvSwitch, fabric++});
    for (const int member : gpus) {
      int ports = 0;
      for (const int peer : gpus) {
        if (peer != member && link(member, peer).switched) ports = std::max(ports, link(member, peer).nvlinks);
      }
      const bool known = find_gpu_model(gpu(member).model) != nullptr;
      join(member, static_cast<int>(vertices_.size()) - 1, ports, per_link(gpu(member)), known);
    }
  }
}

void NodeGraph::find_paths() {
  Graph nvlinks(vertices_.size());
  const int first_gpu = first_gpu_in(vertices_);
  for (const Edge& edge : edges_) {
    if (edge.kind != EdgeKind::kNvLink) continue;
    const bool fabric = vertices_[static_cast<std::size_t>(edge.to)].kind == VertexKind::kNvSwitch;
    const std::int64_t width = fabric ? edge.nvlinks * per_link(gpu(edge.from - first_gpu))
                                      : bandwidth_.at(edge.from - first_gpu, edge.to - first_gpu);
    boost::add_edge(static_cast<std::size_t>(edge.from), static_cast<std::size_t>(edge.to), Weight(width), nvlinks);
  }
  paths_ = PairMatrix(gpu_count());
  Graph reached(machine_.gpus.size());
  for (int a = 0; a < gpu_count(); ++a) {
    const std::vector<std::int64_t> width = widest_from(nvlinks, static_cast<std::size_t>(first_gpu + a));
    for (int b = a + 1; b < gpu_count(); ++b) {
      paths_.set(a, b, width[static_cast<std::size_t>(first_gpu + b)]);
      if (paths_.at(a, b) > 0) boost::add_edge(static_cast<std::size_t>(a), static_cast<std::size_t>(b), reached);
    }
  }
  domains_ = components(reached, gpu_count());
}

}  // namespace mortise::topology
