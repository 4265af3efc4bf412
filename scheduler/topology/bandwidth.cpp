#include "scheduler/topology/bandwidth.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "scheduler/base/quote.h"

namespace mortise::topology {
namespace {

// Per NVLink and direction, nominal: generation 1 (P100) 20 GB/s; 2 (V100), 3 (A100) and 4 (H100) 25 GB/s; 5 (B200)
// 50 GB/s (NVIDIA's architecture papers; `nvidia-smi nvlink -s`). The bridges of GA102 boards carry 14.062 GB/s per
// link (`nvidia-smi nvlink -s`). Ports: P100 4, V100 6, A100 12, H100 and B200 18; A800 and H800 are cut to 8. A30 has
// 4 links of generation 3 (its datasheet's 200 GB/s both ways). PCIe generations are those of the boards.
constexpr std::array kModels = {
    GpuModel{"GB300", 50000, 18, 6}, GpuModel{"GB200", 50000, 18, 5}, GpuModel{"B300", 50000, 18, 6},
    GpuModel{"B200", 50000, 18, 5},  GpuModel{"B100", 50000, 18, 5},  GpuModel{"GH200", 25000, 18, 5},
    GpuModel{"H200", 25000, 18, 5},  GpuModel{"H100", 25000, 18, 5},  GpuModel{"H800", 25000, 8, 5},
    GpuModel{"H20", 25000, 18, 5},   GpuModel{"A100", 25000, 12, 4},  GpuModel{"A800", 25000, 8, 4},
    GpuModel{"A30", 25000, 4, 4},    GpuModel{"A40", 14062, 4, 4},    GpuModel{"A6000", 14062, 4, 4},
    GpuModel{"3090", 14062, 4, 4},   GpuModel{"A10", 0, 0, 4},        GpuModel{"A2", 0, 0, 4},
    GpuModel{"A16", 0, 0, 4},        GpuModel{"L40S", 0, 0, 4},       GpuModel{"L40", 0, 0, 4},
    GpuModel{"L4", 0, 0, 4},         GpuModel{"4090", 0, 0, 4},       GpuModel{"T4", 0, 0, 3},
    GpuModel{"V100", 25000, 6, 3},   GpuModel{"P100", 20000, 4, 3},   GpuModel{"P40", 0, 0, 3},
    GpuModel{"P4", 0, 0, 3},
};

// One step down per class; the step sizes are ours and only rank. The top of generation 3 is what NCCL's search counts
// for a local x16 path (12 GB/s of 15.75 nominal); each later generation doubles it.
struct PcieRow {
  LinkClass link;
  std::int64_t gen3;
  std::int64_t gen4;  ///< later generations double this one
};
constexpr std::array kPcie = {
    PcieRow{LinkClass::kPix, 12000, 24000}, PcieRow{LinkClass::kPxb, 12000, 24000},
    PcieRow{LinkClass::kPhb, 11000, 22000}, PcieRow{LinkClass::kNode, 10000, 20000},
    PcieRow{LinkClass::kSys, 9000, 16000},  PcieRow{LinkClass::kSoc, 9000, 16000},
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

// A model is named by a word that starts with it and does not go on with a digit: V100M32 is a V100, H200 no H20.
bool names(std::string_view text, std::string_view model) {
  for (std::size_t at = text.find(model); at != std::string_view::npos; at = text.find(model, at + 1)) {
    const std::size_t end = at + model.size();
    const bool starts = at == 0 || !is_word(text[at - 1]) || (text.substr(0, at).ends_with("RTX"));
    if (starts && (end == text.size() || !is_digit(text[end]))) return true;
  }
  return false;
}

}  // namespace

std::span<const GpuModel> gpu_models() {
  return kModels;
}

const GpuModel* find_gpu_model(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  const auto* found =
      std::find_if(kModels.begin(), kModels.end(), [&](const GpuModel& model) { return names(upper, model.name); });
  return found == kModels.end() ? nullptr : found;
}

const GpuModel& known_or_assumed_model(std::string_view text) {
  const GpuModel* model = find_gpu_model(text);
  return model != nullptr ? *model : kAssumedModel;
}

std::string unknown_model_message(std::string_view text) {
  std::string known;
  for (const GpuModel& model : kModels) known.append(known.empty() ? "" : ", ").append(model.name);
  return "unknown GPU model " + quote(text) + "; known: " + known;
}

std::int64_t pcie_mb_per_s(int pcie_gen, LinkClass link) {
  for (const PcieRow& row : kPcie) {
    if (row.link == link) return pcie_gen <= 3 ? row.gen3 : row.gen4 << (pcie_gen - 4);
  }
  return 0;
}

}  // namespace mortise::topology
