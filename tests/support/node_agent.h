#pragma once

#include <map>
#include <optional>

#include "scheduler/base/ids.h"
#include "scheduler/base/rng.h"
#include "scheduler/placement/alignment.h"
#include "scheduler/placement/belief.h"
#include "scheduler/placement/node_topology.h"
#include "scheduler/topology/topology_manager.h"

namespace mortise::test {

/// One node's kubelet and device plugin: admits pods and hands out what they are free to hand out, drawn at random.
class NodeAgent {
 public:
  NodeAgent(const placement::NodeTopology& node, Rng& rng)
      : node_(node), rng_(rng), now_(node.empty_node()), held_gpus_(0) {}

  /// What the pod got; nothing when kubelet refuses it.
  std::optional<placement::Hold> admit(AllocationId id, const placement::PodAlignment& pod);
  void release(AllocationId id);

  placement::GpuMask held_gpus() const { return held_gpus_; }
  const topology::IndexSet& held_cpus() const { return held_cpus_; }

 private:
  Result<topology::IndexSet> prefer(const topology::IndexSet& available, const topology::IndexSet& must_include,
                                    std::int64_t size);
  void refresh();

  const placement::NodeTopology& node_;
  Rng& rng_;
  topology::NodeState now_;
  topology::TopologyManager manager_;
  std::map<AllocationId, placement::Hold> pods_;
  placement::GpuMask held_gpus_;
  topology::IndexSet held_cpus_;
};

}  // namespace mortise::test
