#include "scheduler/topology/sources/hwloc_sets.h"

#include <charconv>
#include <cstdint>

#include "scheduler/topology/sources/text_lines.h"

namespace mortise::topology {

std::optional<CpuRanges> parse_hwloc_set(std::string_view text) {
  constexpr int kWordBits = 32;
  const std::vector<std::string_view> parts = split(text, ',');
  if (parts.size() > (kMaxCpuId + 1) / kWordBits) return std::nullopt;
  CpuRanges ranges;
  int base = 0;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part, base += kWordBits) {
    if (part->empty()) continue;
    std::uint32_t word = 0;
    const std::string_view digits = part->substr(part->starts_with("0x") ? 2 : 0);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), word, 16);
    if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
    for (int bit = 0; bit < kWordBits; ++bit) {
      if ((word >> bit & 1) != 0) ranges.push_back({base + bit, base + bit});
    }
  }
  return joined(std::move(ranges));
}

std::vector<int> members(const CpuRanges& set) {
  std::vector<int> ids;
  for (const CpuRange& range : set) {
    for (int id = range.first; id <= range.last; ++id) ids.push_back(id);
  }
  return ids;
}

}  // namespace mortise::topology
