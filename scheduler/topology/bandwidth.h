#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "scheduler/topology/machine.h"

namespace mortise::topology {

/// What the links of one GPU model carry.
struct GpuModel {
  std::string_view name;         ///< a word of the model's name, as vendors write it
  std::int64_t nvlink_mb_per_s;  ///< of one NVLink, one direction, nominal; 0: the model has none
  int nvlinks;                   ///< ports
  int pcie_gen;
};

std::span<const GpuModel> gpu_models();

/// The row for a model as nvidia-smi, node labels or traces write it ("NVIDIA-A100-SXM4-40GB", "Tesla V100-SXM2-16GB",
/// "V100M32", "T4"); null when the table has none, as for an empty text.
const GpuModel* find_gpu_model(std::string_view text);

/// "unknown GPU model ...; known: ...".
std::string unknown_model_message(std::string_view text);

/// MB/s in one direction between two x16 devices of a PCIe generation (3..6) by class; 0 for an unknown class.
std::int64_t pcie_mb_per_s(int pcie_gen, LinkClass link);

/// For ranking only, where the model is not known: the most common link speeds.
inline constexpr GpuModel kAssumedModel = {"", 25000, 18, 4};

/// The row for a model, or the assumed one.
const GpuModel& known_or_assumed_model(std::string_view text);

}  // namespace mortise::topology
