#pragma once

#include <optional>
#include <span>
#include <vector>

#include "scheduler/topology/machine.h"

namespace mortise::topology {

/// Where a device hangs.
struct DevicePlace {
  std::optional<int> bridge;
  std::vector<int> numa;
};

DevicePlace place_of(const Machine& machine, const Gpu& gpu);
DevicePlace place_of(const Machine& machine, const Nic& nic);

/// The class that the PCIe tree and the NUMA nodes of two devices give; kUnknown where they do not.
LinkClass tree_class(std::span<const Bridge> bridges, const DevicePlace& a, const DevicePlace& b);

/// A PCIe tree for the devices, made from their classes.
struct InferredTree {
  std::vector<Bridge> bridges;
  std::vector<std::optional<int>> device_bridge;
};

/// `classes` holds devices x devices values, row by row, `numa` the NUMA ids of each device. Devices that PHB or a
/// nearer class joins share a host bridge, PXB a cascade, PIX a switch. Devices that no such class joins to another
/// have no bridge: how they are attached is not known.
InferredTree infer_tree(std::span<const LinkClass> classes, std::span<const std::vector<int>> numa);

}  // namespace mortise::topology
