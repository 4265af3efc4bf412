#pragma once

#include <cstddef>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/placement/node_topology.h"
#include "scheduler/topology/device_manager.h"

namespace mortise::placement {

/// Plays the device plugin of a node in every way it may answer: where sets tie, its answer depends on the order in
/// which kubelet names the GPUs, which is none. Each round answers one way; `next` moves on to a round not played yet.
class PluginChoices {
 public:
  /// `silent`: no preference is told, so kubelet may choose any of the GPUs it aligned.
  PluginChoices(const NodeTopology& node, bool silent) : node_(node), silent_(silent || !node.plugin_known()) {}

  topology::PreferredAllocation preference();
  void restart() { at_ = 0; }
  /// False when all rounds are played.
  bool next();
  /// There are more rounds than are looked at.
  bool too_many() const { return rounds_ >= kMaxRounds; }

 private:
  static constexpr std::size_t kMaxRounds = 4096;
  struct Question {
    std::size_t answer = 0;
    std::size_t answers = 1;
  };

  Result<topology::IndexSet> answer(const topology::IndexSet& available, const topology::IndexSet& must_include,
                                    std::int64_t size);

  const NodeTopology& node_;
  bool silent_;
  std::vector<Question> questions_;  // of this round, in the order they were asked
  std::size_t at_ = 0;
  std::size_t rounds_ = 0;
};

}  // namespace mortise::placement
