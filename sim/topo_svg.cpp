#include "sim/topo_svg.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "sim/topo_arcs.h"
#include "sim/topo_layout.h"

namespace mortise::sim {
namespace {

using topology::NodeGraph;

constexpr double kMargin = 16;
constexpr double kLegendRow = 20;
constexpr double kBusGap = 46;    // from the machine to the first NVSwitch
constexpr double kBusSpace = 10;  // between NVSwitches

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

// The bar of an NVSwitch fabric.
struct Fabric {
  std::map<int, int> nvlinks;  // by GPU
  std::vector<std::string> label;
  double left = 0;
  double right = 0;
  double top = 0;
};

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
      for (std::size_t i = 0; i < box.label.size(); ++i) {
        text(box.x + 8, box.y + 13 + static_cast<double>(i) * kLine, "start",
             box.kind == BoxKind::kMachine ? " font-weight=\"bold\"" : "", box.label[i]);
      }
    } else {
      const double middle = box.x + box.width / 2;
      text(middle, box.y + (box.detail.empty() ? 24 : 17), "middle",
           box.kind == BoxKind::kGpu ? " font-weight=\"bold\"" : "", box.label.front());
      if (!box.detail.empty()) text(middle, box.y + 31, "middle", " font-size=\"9\"", box.detail);
    }
    for (const Box& inner : box.inside) draw_box(inner);
    right_ = std::max(right_, box.x + box.width);
  }

  static double thickness(int nvlinks) { return std::min(1.2 + 0.9 * nvlinks, 6.0); }

  static std::string bandwidth_text(std::int64_t mb_per_s) {
    return fmt::format("{:.4g} GB/s", static_cast<double>(mb_per_s) / 1000);
  }

  // A bar per NVSwitch fabric, with a line to it from each of its GPUs.
  void draw_switches() {
    const std::vector<Fabric> fabrics = lay_out_fabrics();
    for (const Fabric& fabric : fabrics) {
      for (const auto& [gpu, nvlinks] : fabric.nvlinks) {
        body_ += fmt::format(
            "<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" stroke=\"{3}\" "
            "stroke-width=\"{4:.1f}\"/>\n",
            centre(gpu), below(gpu), fabric.top, colour_.at(nvlinks), thickness(nvlinks));
      }
    }
    for (const Fabric& fabric : fabrics) {
      const double height = bar_height(fabric);
      body_ += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"4\" fill=\"{}\"/>\n", fabric.left,
          fabric.top, fabric.right - fabric.left, height, colour_.at(fabric.nvlinks.begin()->second));
      for (std::size_t i = 0; i < fabric.label.size(); ++i) {
        text((fabric.left + fabric.right) / 2, fabric.top + 17 + static_cast<double>(i) * kLine, "middle",
             " fill=\"#ffffff\" font-weight=\"bold\"", fabric.label[i]);
      }
      right_ = std::max(right_, fabric.right);
      bottom_ = std::max(bottom_, fabric.top + height);
    }
  }

  static double bar_height(const Fabric& fabric) { return 12 + static_cast<double>(fabric.label.size()) * kLine; }

  // Bars that would overlap stand below each other.
  std::vector<Fabric> lay_out_fabrics() const {
    std::vector<Fabric> placed;
    for (std::size_t v = 0; v < graph_.vertices().size(); ++v) {
      if (graph_.vertices()[v].kind != topology::VertexKind::kNvSwitch) continue;
      Fabric fabric = fabric_of(static_cast<int>(v));
      if (fabric.nvlinks.empty()) continue;
      fabric.top = machine_.height + kBusGap;
      for (const Fabric& other : placed) {
        if (fabric.left > other.right + kBusSpace || other.left > fabric.right + kBusSpace) continue;
        fabric.top = std::max(fabric.top, other.top + bar_height(other) + kBusSpace);
      }
      placed.push_back(std::move(fabric));
    }
    return placed;
  }

  Fabric fabric_of(int vertex) const {
    Fabric fabric;
    fabric.left = machine_.width;
    std::set<std::optional<std::int64_t>> bandwidths;
    for (const topology::Edge& edge : graph_.edges()) {
      if (edge.kind != topology::EdgeKind::kNvLink || edge.to != vertex) continue;
      const int gpu = graph_.vertices()[static_cast<std::size_t>(edge.from)].id;
      fabric.nvlinks[gpu] = edge.nvlinks;
      fabric.left = std::min(fabric.left, gpu_box_.at(gpu)->x);
      fabric.right = std::max(fabric.right, gpu_box_.at(gpu)->x + gpu_box_.at(gpu)->width);
      bandwidths.insert(edge.mb_per_s);
    }
    if (!fabric.nvlinks.empty()) label(fabric, bandwidths);
    return fabric;
  }

  // On one line where there is room; else the bar grows.
  static void label(Fabric& fabric, const std::set<std::optional<std::int64_t>>& bandwidths) {
    std::set<int> counts;
    for (const auto& [gpu, nvlinks] : fabric.nvlinks) counts.insert(nvlinks);
    fabric.label = {"NVSwitch", fmt::format("{} NVLinks per GPU", fmt::join(counts, " or "))};
    if (bandwidths.size() == 1 && *bandwidths.begin()) {
      fabric.label.push_back(fmt::format("{} each way", bandwidth_text(**bandwidths.begin())));
    }
    const std::string line = fmt::format("{}", fmt::join(fabric.label, ", "));
    if (bold_width(line) <= fabric.right - fabric.left) fabric.label = {line};
    double missing = 0;
    for (const std::string& part : fabric.label) {
      missing = std::max(missing, bold_width(part) - (fabric.right - fabric.left));
    }
    fabric.left -= missing / 2;
    fabric.right += missing / 2;
  }

  void draw_direct_links() {
    for (const Arc& arc : lay_out_arcs(graph_, gpu_box_)) {
      const std::string path = fmt::format(
          "M {0:.1f} {1:.1f} L {0:.1f} {2:.1f} C {0:.1f} {3:.1f} {4:.1f} {3:.1f} {4:.1f} {2:.1f} L {4:.1f} {5:.1f}",
          arc.from, below(arc.a), machine_.height, machine_.height + arc.depth * 4.0 / 3, arc.to, below(arc.b));
      const double width = thickness(arc.nvlinks);
      for (const auto& [colour, around] :
           {std::pair(std::string_view("#ffffff"), 2.0), {colour_.at(arc.nvlinks), 0.0}}) {
        body_ += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:.1f}\"/>\n", path, colour,
                             width + around);
      }
      bottom_ = std::max(bottom_, machine_.height + arc.depth);
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
