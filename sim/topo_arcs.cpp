#include "sim/topo_arcs.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace mortise::sim {
namespace {

constexpr int kLeastDepth = 30;
constexpr double kSlope = 0.34;  // of the depth over the width
constexpr int kApart = 13;       // between the depths of arcs that share a part of their width

using Boxes = std::map<int, const Box*>;

double centre(const Boxes& boxes, int gpu) {
  const Box& box = *boxes.at(gpu);
  return box.x + box.width / 2;
}

void spread(std::vector<Arc>& arcs, const Boxes& boxes, int gpu) {
  std::vector<Arc*> at;
  for (Arc& arc : arcs) {
    if (arc.a == gpu || arc.b == gpu) at.push_back(&arc);
  }
  // To the left the nearest first, then to the right the farthest first.
  const auto key = [&](const Arc* arc) {
    const double away = centre(boxes, arc->a == gpu ? arc->b : arc->a) - centre(boxes, gpu);
    return away < 0 ? std::pair(0, -away) : std::pair(1, -away);
  };
  std::sort(at.begin(), at.end(), [&](const Arc* x, const Arc* y) { return key(x) < key(y); });
  const Box& box = *boxes.at(gpu);
  for (std::size_t i = 0; i < at.size(); ++i) {
    const double x = box.x + box.width * static_cast<double>(i + 1) / static_cast<double>(at.size() + 1);
    (at[i]->a == gpu ? at[i]->from : at[i]->to) = x;
  }
}

// Whether `arc` has to go deeper because of a narrower one.
bool is_in_the_way(const Arc& narrow, const Arc& arc) {
  if (narrow.to < arc.from || arc.to < narrow.from) return false;
  const bool inside = arc.from < narrow.from && narrow.to < arc.to;
  return inside ? arc.depth < narrow.depth + kApart : std::abs(arc.depth - narrow.depth) < kApart;
}

// `arcs` are in the order of their widths, narrowest first. Every step goes to the least depth below another arc (whole
// numbers, so it is no longer in the way), and no deeper than below all: there is an end.
void sink(std::vector<Arc>& arcs) {
  for (std::size_t i = 0; i < arcs.size(); ++i) {
    Arc& arc = arcs[i];
    arc.depth = kLeastDepth + static_cast<int>(std::lround(kSlope * (arc.to - arc.from)));
    for (std::size_t k = 0; k < i;) {
      if (is_in_the_way(arcs[k], arc)) {
        arc.depth = arcs[k].depth + kApart;
        k = 0;
      } else {
        ++k;
      }
    }
  }
}

}  // namespace

std::vector<Arc> lay_out_arcs(const topology::NodeGraph& graph, const Boxes& gpu_boxes) {
  std::vector<Arc> arcs;
  for (int a = 0; a < graph.gpu_count(); ++a) {
    for (int b = a + 1; b < graph.gpu_count(); ++b) {
      const topology::PairLink& pair = graph.link(a, b);
      if (pair.nvlinks == 0 || pair.switched) continue;
      const bool straight = centre(gpu_boxes, a) < centre(gpu_boxes, b);
      arcs.push_back({straight ? a : b, straight ? b : a, pair.nvlinks});
    }
  }
  for (int gpu = 0; gpu < graph.gpu_count(); ++gpu) spread(arcs, gpu_boxes, gpu);
  // Equally wide ones from left to right; rounded, so that sums of fractions do not order them.
  const auto width = [](const Arc& arc) { return std::lround(arc.to - arc.from); };
  std::sort(arcs.begin(), arcs.end(),
            [&](const Arc& x, const Arc& y) { return std::pair(width(x), x.from) < std::pair(width(y), y.from); });
  sink(arcs);
  std::reverse(arcs.begin(), arcs.end());
  return arcs;
}

}  // namespace mortise::sim
