#pragma once

#include <string>
#include <vector>

#include "scheduler/topology/graph.h"

namespace mortise::sim {

enum class BoxKind { kMachine, kSocket, kNuma, kHostBridge, kSwitch, kGpu, kNic };

/// A box of the picture; the boxes in it stand beside each other.
struct Box {
  BoxKind kind = BoxKind::kMachine;
  std::vector<std::string> label;  ///< lines
  std::string detail;              ///< second line, of GPUs and NICs
  int device = -1;                 ///< position of a GPU
  std::vector<Box> inside;         ///< of the others
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

/// From one line of text to the next.
inline constexpr double kLine = 14;

/// At most as wide as a bold text is drawn, with some space around it.
double bold_width(const std::string& text);

/// The containment of the machine as boxes with their places. All GPUs stand at one height, so that links below them
/// can be told apart.
Box lay_out(const topology::NodeGraph& graph);

}  // namespace mortise::sim
