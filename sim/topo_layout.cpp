#include "sim/topo_layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "sim/topo_report.h"

namespace mortise::sim {
namespace {

using topology::Bridge;
using topology::BridgeKind;
using topology::NodeGraph;

constexpr double kPad = 8;
constexpr double kLabel = 18;
// The mean width of a letter of DejaVu Sans, which is wide, at the sizes used.
constexpr double kLetter = 6.7;
constexpr double kBoldLetter = 7.2;
constexpr double kSmallLetter = 5.7;
constexpr double kLeafHeight = 40;
constexpr double kLeafWidth = 58;

constexpr std::size_t kLongList = 26;  // letters of a CPU list

double text_width(const std::string& text, double letter) {
  return text.empty() ? 0 : static_cast<double>(text.size()) * letter + 2 * kPad;
}

double label_width(const Box& box) {
  double width = 0;
  const bool bold = box.kind == BoxKind::kMachine || box.kind == BoxKind::kGpu;
  for (const std::string& line : box.label) width = std::max(width, text_width(line, bold ? kBoldLetter : kLetter));
  return width;
}

// CPUs that alternate between NUMA nodes make a list as wide as the machine.
std::string cpus_text(const std::string& list) {
  if (list.size() <= kLongList) return "CPUs " + list;
  return "CPUs " + list.substr(0, list.rfind(',', kLongList) + 1) + "...";
}

bool is_leaf(const Box& box) {
  return box.kind == BoxKind::kGpu || box.kind == BoxKind::kNic;
}

// Puts the devices and bridges of a machine into boxes.
class BoxTree {
 public:
  explicit BoxTree(const NodeGraph& graph) : graph_(graph) {}

  Box build() {
    hang_devices();
    Box machine{BoxKind::kMachine, {title()}, {}, -1, {}};
    std::map<int, Box> sockets;
    for (const topology::NumaNode& node : graph_.machine().numa) {
      Box box = numa_box(node);
      if (!node.socket) {
        machine.inside.push_back(std::move(box));
        continue;
      }
      Box& socket = sockets[*node.socket];
      socket.kind = BoxKind::kSocket;
      socket.label = {fmt::format("socket {}", *node.socket)};
      socket.inside.push_back(std::move(box));
    }
    std::vector<Box> first;
    for (auto& [id, box] : sockets) first.push_back(std::move(box));
    machine.inside.insert(machine.inside.begin(), std::make_move_iterator(first.begin()),
                          std::make_move_iterator(first.end()));
    for (auto& [label, boxes] : groups_) machine.inside.push_back({BoxKind::kNuma, {label}, {}, -1, std::move(boxes)});
    return machine;
  }

 private:
  std::string title() const {
    std::vector<std::pair<std::string, int>> models;
    for (const topology::Gpu& gpu : graph_.machine().gpus) {
      const std::string name = gpu.model.empty() ? "GPU" : gpu.model;
      const auto known = std::find_if(models.begin(), models.end(), [&](const auto& row) { return row.first == name; });
      if (known == models.end()) {
        models.emplace_back(name, 1);
      } else {
        ++known->second;
      }
    }
    std::string text = models.empty() ? "no GPUs, " : "";
    for (const auto& [name, count] : models) text += fmt::format("{} x {}, ", count, name);
    const std::size_t nics = graph_.machine().nics.size();
    return text + (nics == 0 ? "no NICs" : fmt::format("{} NIC{}", nics, nics == 1 ? "" : "s"));
  }

  Box numa_box(const topology::NumaNode& node) {
    std::vector<std::string> label = {fmt::format("NUMA {}", node.id)};
    if (node.memory_of_gpu) label.push_back(fmt::format("memory of GPU{}", *node.memory_of_gpu));
    if (node.cpus && !node.cpus->empty()) label.push_back(cpus_text(to_text(*node.cpus)));
    if (node.memory) label.push_back(bytes_text(*node.memory));
    std::vector<Box> inside = std::move(in_numa_[node.id]);
    // There is room for lines only where nothing stands below them.
    if (!inside.empty()) label = {fmt::format("{}", fmt::join(label, ", "))};
    return {BoxKind::kNuma, std::move(label), {}, -1, std::move(inside)};
  }

  void hang_devices() {
    std::map<int, std::vector<Box>> below;  // bridge -> devices on it
    for (int i = 0; i < graph_.gpu_count(); ++i) {
      const topology::Gpu& gpu = graph_.machine().gpus[static_cast<std::size_t>(i)];
      const std::string name = graph_.machine().gpus_numbered ? fmt::format("GPU{}", gpu.index) : "a GPU";
      Box box{BoxKind::kGpu, {name}, gpu.bus_id, i, {}};
      if (const auto bridge = graph_.gpu_bridge(i)) {
        below[*bridge].push_back(std::move(box));
      } else {
        place(std::move(box), gpu.numa, gpu.cpus ? cpus_text(to_text(*gpu.cpus)) : "");
      }
    }
    for (std::size_t i = 0; i < graph_.machine().nics.size(); ++i) {
      const topology::Nic& nic = graph_.machine().nics[i];
      Box box{BoxKind::kNic, {nic.name}, nic.device == nic.name ? std::string() : nic.device, -1, {}};
      if (const auto bridge = graph_.nic_bridge(static_cast<int>(i))) {
        below[*bridge].push_back(std::move(box));
      } else {
        place_nic(std::move(box), static_cast<int>(i));
      }
    }
    // Children come after their parents, so from the back every box is complete when it is put into its own.
    std::vector<Box> boxes(graph_.bridges().size());
    for (std::size_t i = graph_.bridges().size(); i-- > 0;) {
      for (Box& device : below[static_cast<int>(i)]) boxes[i].inside.push_back(std::move(device));
      close_bridge(i, boxes);
    }
  }

  void close_bridge(std::size_t at, std::vector<Box>& boxes) {
    const Bridge& bridge = graph_.bridges()[at];
    Box box = std::move(boxes[at]);
    if (box.inside.empty()) return;
    // Bridges, then GPUs, then NICs.
    std::stable_sort(box.inside.begin(), box.inside.end(), [](const Box& x, const Box& y) {
      return is_leaf(x) < is_leaf(y) || (is_leaf(x) && x.kind < y.kind);
    });
    box.kind = bridge.kind == BridgeKind::kHostBridge ? BoxKind::kHostBridge : BoxKind::kSwitch;
    box.label = {bridge.kind == BridgeKind::kHostBridge ? "host bridge"
                 : bridge.kind == BridgeKind::kCascade  ? "PCIe switches"
                                                        : "PCIe switch"};
    // A bridge with one thing below it is a port, and a cascade with one switch is that switch.
    if (bridge.kind != BridgeKind::kHostBridge && box.inside.size() == 1) {
      Box inner = std::move(box.inside.front());
      box = std::move(inner);
    }
    if (bridge.parent >= 0) {
      auto& siblings = boxes[static_cast<std::size_t>(bridge.parent)].inside;
      siblings.insert(siblings.begin(), std::move(box));
    } else {
      place(std::move(box), bridge.numa, cpus_in(at));
    }
  }

  // The CPU list of a GPU below a host bridge: it names the group where NUMA nodes are not known.
  std::string cpus_in(std::size_t bridge) const {
    for (int i = 0; i < graph_.gpu_count(); ++i) {
      std::optional<int> above = graph_.gpu_bridge(i);
      while (above && *above != static_cast<int>(bridge)) {
        const int parent = graph_.bridges()[static_cast<std::size_t>(*above)].parent;
        above = parent < 0 ? std::nullopt : std::optional(parent);
      }
      const topology::Gpu& gpu = graph_.machine().gpus[static_cast<std::size_t>(i)];
      if (above && gpu.cpus) return cpus_text(to_text(*gpu.cpus));
    }
    return {};
  }

  // A NIC whose place is not said stands with the GPUs it is near to.
  void place_nic(Box box, int nic) {
    const topology::Nic& device = graph_.machine().nics[static_cast<std::size_t>(nic)];
    for (int gpu = 0; gpu < graph_.gpu_count() && device.numa.empty(); ++gpu) {
      if (graph_.nic_link(gpu, nic) > topology::LinkClass::kNode) continue;
      const topology::Gpu& near = graph_.machine().gpus[static_cast<std::size_t>(gpu)];
      return place(std::move(box), near.numa, near.cpus ? cpus_text(to_text(*near.cpus)) : "");
    }
    place(std::move(box), device.numa, "");
  }

  void place(Box box, const std::vector<int>& numa, const std::string& cpus) {
    if (numa.size() == 1) {
      insert(in_numa_[numa.front()], std::move(box));
    } else if (numa.size() > 1) {
      insert(groups_[fmt::format("near NUMA {}", fmt::join(numa, ", "))], std::move(box));
    } else {
      insert(groups_[cpus.empty() ? "NUMA node not known" : cpus], std::move(box));
    }
  }

  // Bridges are closed from the last to the first; so they go to the front, and devices behind them in their order.
  static void insert(std::vector<Box>& boxes, Box box) {
    if (is_leaf(box)) {
      boxes.push_back(std::move(box));
    } else {
      boxes.insert(boxes.begin(), std::move(box));
    }
  }

  const NodeGraph& graph_;
  std::map<int, std::vector<Box>> in_numa_;
  std::map<std::string, std::vector<Box>> groups_;
};

int depth_of(const Box& box) {
  int depth = 0;
  for (const Box& inner : box.inside) depth = std::max(depth, 1 + depth_of(inner));
  return depth;
}

void move_right(Box& box, double by) {
  box.x += by;
  for (Box& inner : box.inside) move_right(inner, by);
}

// Boxes of one level share top and bottom, and all devices the same line.
void place_boxes(Box& box, double x, int level, int deepest) {
  box.x = x;
  if (is_leaf(box)) {
    box.y = deepest * kLabel + kPad;
    box.height = kLeafHeight;
    box.width = std::max({kLeafWidth, label_width(box), text_width(box.detail, kSmallLetter)});
    return;
  }
  box.y = level * kLabel;
  box.height = (deepest - level) * kLabel + kLeafHeight + kPad + (deepest - level) * kPad;
  double right = x + kPad;
  for (Box& inner : box.inside) {
    place_boxes(inner, right, level + 1, deepest);
    right += inner.width + kPad;
  }
  box.width = std::max(right - x, label_width(box));
  for (Box& inner : box.inside) move_right(inner, (x + box.width - right) / 2);
}

}  // namespace

double bold_width(const std::string& text) {
  return text_width(text, kBoldLetter);
}

Box lay_out(const NodeGraph& graph) {
  Box machine = BoxTree(graph).build();
  place_boxes(machine, 0, 0, std::max(depth_of(machine), 1));
  return machine;
}

}  // namespace mortise::sim
