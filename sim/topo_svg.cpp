#include "sim/topo_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "sim/topo_layout.h"

namespace mortise::sim {
namespace {

using topology::NodeGraph;

constexpr double kMargin = 16;
constexpr double kLegendRow = 20;
constexpr double kBusGap = 46;  // from the machine to the first NVSwitch
constexpr double kBusHeight = 26;

struct Look {
  std::string_view fill;
  std::string_view stroke;
};

Look look_of(BoxKind kind) {
  switch (kind) {
    case BoxKind::kMachine:
      return {"#ffffff", "#333333"};
    case BoxKind::kSocket:
      return {"#f2f2f2", "#777777"};
    case BoxKind::kNuma:
      return {"#e8f0e4", "#7c9a6f"};
    case BoxKind::kHostBridge:
      return {"#fdf6e3", "#b39b62"};
    case BoxKind::kSwitch:
      return {"#f8e3cd", "#b9854e"};
    case BoxKind::kGpu:
      return {"#cfe2f3", "#2c5d8a"};
    case BoxKind::kNic:
      return {"#ead6ea", "#8a4f8a"};
  }
  return {};
}

// Told apart by hue and lightness; the k-th number of NVLinks that occurs gets the k-th colour.
constexpr std::array<std::string_view, 6> kLinkColours = {"#6b9f3c", "#d1495b", "#1f6f8b",
                                                          "#e08e1b", "#7d4e9f", "#444444"};

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '&') {
      result += "&amp;";
    } else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) {
      result += '?';
    } else {
      result += c;
    }
  }
  return result;
}

class Drawing {
 public:
  explicit Drawing(const NodeGraph& graph) : graph_(graph), machine_(lay_out(graph)) {
    find_gpus(machine_);
    std::set<int> counts;
    for (int a = 0; a < graph.gpu_count(); ++a) {
      for (int b = a + 1; b < graph.gpu_count(); ++b) {
        if (graph.link(a, b).nvlinks > 0) counts.insert(graph.link(a, b).nvlinks);
      }
    }
    for (const int count : counts)
      colour_.emplace(count, kLinkColours[std::min(colour_.size(), kLinkColours.size() - 1)]);
  }

  std::string draw() {
    draw_box(machine_);
    bottom_ = machine_.height;
    draw_switches();
    draw_direct_links();
    draw_legend();
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"{2:.0f} {2:.0f} "
        "{0:.0f} "
        "{1:.0f}\" font-family=\"DejaVu Sans, Helvetica, sans-serif\" font-size=\"11\">\n"
        "<rect x=\"{2:.0f}\" y=\"{2:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"#ffffff\"/>\n{3}</svg>\n",
        right_ + 2 * kMargin, bottom_ + 2 * kMargin, -kMargin, body_);
  }

 private:
  struct Direct {
    int a = 0;  // the left one
    int b = 0;
    int nvlinks = 0;
    double from = 0;
    double to = 0;
  };

  void find_gpus(const Box& box) {
    if (box.kind == BoxKind::kGpu) gpu_box_[box.device] = &box;
    for (const Box& inner : box.inside) find_gpus(inner);
  }

  double centre(int gpu) const {
    const Box& box = *gpu_box_.at(gpu);
    return box.x + box.width / 2;
  }
  double below(int gpu) const {
    const Box& box = *gpu_box_.at(gpu);
    return box.y + box.height;
  }

  void text(double x, double y, std::string_view anchor, std::string_view style, std::string_view what) {
    body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, style,
                         escaped(what));
  }

  void draw_box(const Box& box) {
    const Look look = look_of(box.kind);
    const bool leaf = box.kind == BoxKind::kGpu || box.kind == BoxKind::kNic;
    body_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"3\" fill=\"{}\" stroke=\"{}\"/>\n",
        box.x, box.y, box.width, box.height, look.fill, look.stroke);
    if (!leaf) {
      text(box.x + 8, box.y + 13, "start", box.kind == BoxKind::kMachine ? " font-weight=\"bold\"" : "", box.label);
    } else {
      const double middle = box.x + box.width / 2;
      text(middle, box.y + (box.detail.empty() ? 24 : 17), "middle",
           box.kind == BoxKind::kGpu ? " font-weight=\"bold\"" : "", box.label);
      if (!box.detail.empty()) text(middle, box.y + 31, "middle", " font-size=\"9\"", box.detail);
    }
    for (const Box& inner : box.inside) draw_box(inner);
    right_ = std::max(right_, box.x + box.width);
  }

  static double thickness(int nvlinks) { return std::min(1.2 + 0.9 * nvlinks, 6.0); }

  std::string bandwidth_text(std::int64_t mb_per_s) const {
    return fmt::format("{:.4g} GB/s", static_cast<double>(mb_per_s) / 1000);
  }

  // A bar per NVSwitch fabric, with a line to it from each of its GPUs.
  void draw_switches() {
    for (std::size_t v = 0; v < graph_.vertices().size(); ++v) {
      if (graph_.vertices()[v].kind != topology::VertexKind::kNvSwitch) continue;
      std::vector<std::pair<int, int>> ports;  // GPU, NVLinks
      std::optional<std::int64_t> bandwidth;
      for (const topology::Edge& edge : graph_.edges()) {
        if (edge.kind != topology::EdgeKind::kNvLink || edge.to != static_cast<int>(v)) continue;
        ports.emplace_back(graph_.vertices()[static_cast<std::size_t>(edge.from)].id, edge.nvlinks);
        bandwidth = edge.mb_per_s;
      }
      draw_switch(ports, bandwidth);
    }
  }

  void draw_switch(const std::vector<std::pair<int, int>>& ports, std::optional<std::int64_t> bandwidth) {
    if (ports.empty()) return;
    double left = right_;
    double right = 0;
    const double top = bottom_ + kBusGap;
    for (const auto& [gpu, nvlinks] : ports) {
      left = std::min(left, gpu_box_.at(gpu)->x);
      right = std::max(right, gpu_box_.at(gpu)->x + gpu_box_.at(gpu)->width);
      body_ += fmt::format(
          "<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" stroke=\"{3}\" "
          "stroke-width=\"{4:.1f}\"/>\n",
          centre(gpu), below(gpu), top, colour_.at(nvlinks), thickness(nvlinks));
    }
    const int nvlinks = ports.front().second;
    body_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"4\" fill=\"{}\"/>\n",
                         left, top, right - left, kBusHeight, colour_.at(nvlinks));
    std::string label = fmt::format("NVSwitch, {} NVLinks per GPU", nvlinks);
    if (bandwidth) label += fmt::format(", {} each way", bandwidth_text(*bandwidth));
    text((left + right) / 2, top + 17, "middle", " fill=\"#ffffff\" font-weight=\"bold\"", label);
    bottom_ = top + kBusHeight;
  }

  // Arcs below the machine. At each GPU they leave side by side, in the order that lets them run inside each other.
  void draw_direct_links() {
    std::vector<Direct> links;
    for (int a = 0; a < graph_.gpu_count(); ++a) {
      for (int b = a + 1; b < graph_.gpu_count(); ++b) {
        const topology::PairLink& pair = graph_.link(a, b);
        if (pair.nvlinks == 0 || pair.switched) continue;
        const bool straight = centre(a) < centre(b);
        links.push_back({straight ? a : b, straight ? b : a, pair.nvlinks});
      }
    }
    for (int gpu = 0; gpu < graph_.gpu_count(); ++gpu) spread(links, gpu);
    // Wide arcs first, so that short ones lie on top.
    std::stable_sort(links.begin(), links.end(),
                     [](const Direct& x, const Direct& y) { return x.to - x.from > y.to - y.from; });
    double lowest = bottom_;
    for (const Direct& link : links) {
      const double depth = 30 + 0.34 * (link.to - link.from);
      const double start = std::max(below(link.a), below(link.b));
      body_ += fmt::format(
          "<path d=\"M {0:.1f} {1:.1f} L {0:.1f} {2:.1f} C {0:.1f} {3:.1f} {4:.1f} {3:.1f} {4:.1f} {2:.1f} L {4:.1f} "
          "{5:.1f}\" "
          "fill=\"none\" stroke=\"#ffffff\" stroke-width=\"{7:.1f}\"/>\n"
          "<path d=\"M {0:.1f} {1:.1f} L {0:.1f} {2:.1f} C {0:.1f} {3:.1f} {4:.1f} {3:.1f} {4:.1f} {2:.1f} L {4:.1f} "
          "{5:.1f}\" "
          "fill=\"none\" stroke=\"{6}\" stroke-width=\"{8:.1f}\"/>\n",
          link.from, below(link.a), machine_.height, machine_.height + depth * 4 / 3, link.to, below(link.b),
          colour_.at(link.nvlinks), thickness(link.nvlinks) + 2, thickness(link.nvlinks));
      lowest = std::max({lowest, start, machine_.height + depth});
    }
    bottom_ = lowest;
  }

  void spread(std::vector<Direct>& links, int gpu) const {
    std::vector<Direct*> at;
    for (Direct& link : links) {
      if (link.a == gpu || link.b == gpu) at.push_back(&link);
    }
    // To the left the nearest first, then to the right the farthest first.
    const auto key = [&](const Direct* link) {
      const int other = link->a == gpu ? link->b : link->a;
      const double away = centre(other) - centre(gpu);
      return away < 0 ? std::pair(0, -away) : std::pair(1, -away);
    };
    std::sort(at.begin(), at.end(), [&](const Direct* x, const Direct* y) { return key(x) < key(y); });
    const Box& box = *gpu_box_.at(gpu);
    for (std::size_t i = 0; i < at.size(); ++i) {
      const double x = box.x + box.width * static_cast<double>(i + 1) / static_cast<double>(at.size() + 1);
      (at[i]->a == gpu ? at[i]->from : at[i]->to) = x;
    }
  }

  // What the colours of direct links mean.
  void draw_legend() {
    std::map<int, std::set<std::string>> direct;
    for (int a = 0; a < graph_.gpu_count(); ++a) {
      for (int b = a + 1; b < graph_.gpu_count(); ++b) {
        const topology::PairLink& pair = graph_.link(a, b);
        if (pair.nvlinks == 0 || pair.switched) continue;
        const auto bandwidth = graph_.mb_per_s(a, b);
        direct[pair.nvlinks].insert(bandwidth ? bandwidth_text(*bandwidth) : std::string());
      }
    }
    for (const auto& [nvlinks, bandwidths] : direct) {
      bottom_ += kLegendRow;
      body_ += fmt::format(
          "<line x1=\"8\" y1=\"{0:.1f}\" x2=\"40\" y2=\"{0:.1f}\" stroke=\"{1}\" stroke-width=\"{2:.1f}\"/>\n",
          bottom_ - 4, colour_.at(nvlinks), thickness(nvlinks));
      std::string label = fmt::format("NV{}", nvlinks);
      for (const std::string& bandwidth : bandwidths) {
        if (!bandwidth.empty()) label += ", " + bandwidth + " each way";
      }
      text(48, bottom_, "start", "", label);
      right_ = std::max(right_, 48 + static_cast<double>(label.size()) * 7);
    }
  }

  const NodeGraph& graph_;
  Box machine_;
  std::map<int, const Box*> gpu_box_;
  std::map<int, std::string_view> colour_;
  std::string body_;
  double right_ = 0;
  double bottom_ = 0;
};

}  // namespace

std::string topo_svg(const NodeGraph& graph) {
  return Drawing(graph).draw();
}

}  // namespace mortise::sim
