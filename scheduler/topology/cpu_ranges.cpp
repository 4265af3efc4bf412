#include "scheduler/topology/cpu_ranges.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "scheduler/base/quote.h"

namespace mortise::topology {
namespace {

std::optional<int> cpu_id(std::string_view text) {
  int id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id < 0 || id > kMaxCpuId) return std::nullopt;
  return id;
}

}  // namespace

Result<CpuRanges> parse_cpu_ranges(std::string_view text) {
  CpuRanges ranges;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(','));
    const bool more = part.size() < rest.size();
    rest.remove_prefix(part.size() + (more ? 1 : 0));
    const std::size_t dash = part.find('-');
    const auto first = cpu_id(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : cpu_id(part.substr(dash + 1));
    if (!first || !last || *first > *last || (more && rest.empty())) {
      return Error{"bad CPU list " + quote(text) + "; allowed: ids 0.." + std::to_string(kMaxCpuId) +
                   " and ranges, like 0-3,8"};
    }
    ranges.push_back({*first, *last});
  }
  return joined(std::move(ranges));
}

std::string to_text(const CpuRanges& cpus) {
  std::string text;
  for (const CpuRange& range : cpus) {
    if (!text.empty()) text += ',';
    text += std::to_string(range.first);
    if (range.last > range.first) text += "-" + std::to_string(range.last);
  }
  return text;
}

CpuRanges joined(CpuRanges ranges) {
  std::sort(ranges.begin(), ranges.end());
  CpuRanges result;
  for (const CpuRange& range : ranges) {
    if (!result.empty() && range.first <= result.back().last + 1) {
      result.back().last = std::max(result.back().last, range.last);
    } else {
      result.push_back(range);
    }
  }
  return result;
}

int cpu_count(const CpuRanges& cpus) {
  int count = 0;
  for (const CpuRange& range : cpus) count += range.last - range.first + 1;
  return count;
}

bool overlap(const CpuRanges& a, const CpuRanges& b) {
  auto x = a.begin();
  auto y = b.begin();
  while (x != a.end() && y != b.end()) {
    if (x->first <= y->last && y->first <= x->last) return true;
    if (x->last < y->last) {
      ++x;
    } else {
      ++y;
    }
  }
  return false;
}

}  // namespace mortise::topology
