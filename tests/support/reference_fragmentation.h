#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "scheduler/base/units.h"
#include "scheduler/placement/fragmentation.h"

namespace mortise::reference {

/// A class of the distribution M and its share.
struct Typical {
  placement::PodClass pod;
  double weight = 0;
};

/// The most frequent classes that cover 95 % of the pods, most frequent first; among equals the larger cpu, then share,
/// then count, then spec. Weights add up to about 1.
std::vector<Typical> typical_classes(std::span<const placement::PodClass> pods);

/// What a node has left.
struct Left {
  MilliCpu cpu = 0;
  Bytes memory = 0;
  std::int64_t pods = 0;
  std::vector<MilliGpu> devices;

  MilliGpu milli() const;
};

/// F of one node, in milli-GPU.
double fragmentation(const Left& left, const std::string& model, std::span<const Typical> typical);

}  // namespace mortise::reference
