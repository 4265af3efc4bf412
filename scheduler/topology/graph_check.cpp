// NodeGraph::check(): everything derived, computed a second time by plainer means.
#include <algorithm>
#include <numeric>

#include "scheduler/topology/graph.h"

namespace mortise::topology {
namespace {

Error wrong(const std::string& what, int a, int b) {
  return Error{"node graph: " + what + " of GPUs at " + std::to_string(a) + " and " + std::to_string(b)};
}

}  // namespace

Status NodeGraph::check() const {
  if (const Status status = mortise::topology::check(machine_); !status) return status;
  if (const Status status = check_links(); !status) return status;
  if (const Status status = check_paths(); !status) return status;
  return check_shape();
}

Status NodeGraph::check_links() const {
  for (int a = 0; a < gpu_count(); ++a) {
    if (bandwidth_.at(a, a) != 0 || scores_.at(a, a) != 0) return wrong("value on the diagonal", a, a);
    for (int b = 0; b < gpu_count(); ++b) {
      if (a == b) continue;
      const PairLink& pair = link(a, b);
      if (!(pair == link(b, a))) return wrong("asymmetric link", a, b);
      if (pair.switched && pair.nvlinks == 0) return wrong("a switch without NVLinks", a, b);
      if (pair.pcie != LinkClass::kUnknown && pair.pcie != pair.likely) return wrong("two classes", a, b);
      const auto known = mb_per_s(a, b);
      if (known && *known != bandwidth_.at(a, b)) return wrong("two bandwidths", a, b);
    }
    for (const int nic : nearest_nics(a)) {
      for (std::size_t other = 0; other < machine_.nics.size(); ++other) {
        if (nic_link(a, static_cast<int>(other)) < nic_link(a, nic)) return wrong("a nearer NIC", a, a);
      }
    }
  }
  return ok_status();
}

// Floyd and Warshall's algorithm for bottlenecks, on pairs instead of on the graph with its NVSwitch.
Status NodeGraph::check_paths() const {
  const int n = gpu_count();
  PairMatrix width(n);
  for (int a = 0; a < n; ++a) {
    for (int b = a + 1; b < n; ++b) width.set(a, b, link(a, b).nvlinks > 0 ? bandwidth_.at(a, b) : 0);
  }
  for (int via = 0; via < n; ++via) {
    for (int a = 0; a < n; ++a) {
      for (int b = a + 1; b < n; ++b) {
        if (a == via || b == via) continue;
        width.set(a, b, std::max(width.at(a, b), std::min(width.at(a, via), width.at(via, b))));
      }
    }
  }
  std::vector<int> domain(static_cast<std::size_t>(n), -1);
  for (std::size_t d = 0; d < domains_.size(); ++d) {
    for (const int gpu : domains_[d]) domain[static_cast<std::size_t>(gpu)] = static_cast<int>(d);
  }
  for (int a = 0; a < n; ++a) {
    for (int b = a + 1; b < n; ++b) {
      if (width.at(a, b) != paths_.at(a, b)) return wrong("another widest NVLink path", a, b);
      const int x = domain[static_cast<std::size_t>(a)];
      const int y = domain[static_cast<std::size_t>(b)];
      if ((width.at(a, b) > 0) != (x >= 0 && x == y)) return wrong("another NVLink domain", a, b);
    }
  }
  return ok_status();
}

// Containment is a forest, and the PCIe tree explains no two devices as nearer than the source says they are.
Status NodeGraph::check_shape() const {
  const int count = static_cast<int>(vertices_.size());
  for (const Edge& edge : edges_) {
    if (edge.from < 0 || edge.to < 0 || edge.from >= count || edge.to >= count || edge.from == edge.to) {
      return Error{"node graph: an edge leads nowhere"};
    }
    if ((edge.kind == EdgeKind::kNvLink) != (edge.nvlinks > 0)) return Error{"node graph: an edge of two kinds"};
    if (edge.mb_per_s && *edge.mb_per_s <= 0) return Error{"node graph: an edge without bandwidth"};
  }
  for (std::size_t i = 0; i < bridges_.size(); ++i) {
    if (bridges_[i].parent >= static_cast<int>(i)) return Error{"node graph: a bridge stands before its parent"};
  }
  std::vector<int> holders(vertices_.size(), 0);
  for (const Edge& edge : edges_) {
    if (edge.kind == EdgeKind::kPcie) ++holders[static_cast<std::size_t>(edge.to)];
  }
  for (int i = 0; i < count; ++i) {
    const Vertex& vertex = vertices_[static_cast<std::size_t>(i)];
    const bool below_bridge = (vertex.kind == VertexKind::kGpu && gpu_bridge(vertex.id)) ||
                              (vertex.kind == VertexKind::kNic && nic_bridge(vertex.id)) ||
                              vertex.kind == VertexKind::kSwitch;
    if (below_bridge && holders[static_cast<std::size_t>(i)] != 1) {
      return Error{"node graph: a device hangs on several bridges"};
    }
  }
  return ok_status();
}

}  // namespace mortise::topology
