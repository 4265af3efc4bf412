#include "sim/option_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace mortise::sim {

namespace {

/// More seeds than anyone means to ask for; a typing error must not fill the memory.
constexpr std::uint64_t kMaxSeeds = 100'000;

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
  return value;
}

Error bad_seeds(std::string_view text, std::string_view why) {
  return Error{fmt::format("--seeds '{}': {}; allowed: a number, a list 42,45 or a range 42..51", text, why)};
}

}  // namespace

Result<std::uint64_t> parse_number(std::string_view text, std::string_view what) {
  if (const auto value = whole_number(text)) return *value;
  return Error{
      fmt::format("{} '{}' is not a number; allowed: a whole number from 0 to 18446744073709551615", what, text)};
}

Result<std::uint64_t> parse_count(std::string_view text, std::string_view what, std::uint64_t max) {
  const auto count = whole_number(text);
  if (count && *count >= 1 && *count <= max) return *count;
  return Error{fmt::format("{} '{}' is out of range; allowed: a whole number from 1 to {}", what, text, max)};
}

Result<double> parse_positive(std::string_view text, std::string_view what, double max) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  if (text.empty() || error != std::errc() || stop != end || !(value > 0) || value > max) {
    return Error{fmt::format("{} '{}' is out of range; allowed: a number above 0, at most {}", what, text, max)};
  }
  return value;
}

Result<std::vector<std::uint64_t>> parse_seeds(std::string_view text) {
  std::vector<std::uint64_t> seeds;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t dots = part.find("..");
    const auto first = whole_number(part.substr(0, dots));
    const auto last = dots == std::string_view::npos ? first : whole_number(part.substr(dots + 2));
    if (!first || !last) return bad_seeds(text, fmt::format("'{}' is not a seed", part));
    if (*last < *first) return bad_seeds(text, fmt::format("'{}' runs backwards", part));
    if (*last - *first >= kMaxSeeds - seeds.size())
      return bad_seeds(text, fmt::format("more than {} seeds", kMaxSeeds));
    for (std::uint64_t i = 0; i <= *last - *first; ++i) seeds.push_back(*first + i);
  }
  std::vector<std::uint64_t> sorted = seeds;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) return bad_seeds(text, fmt::format("seed {} is named twice", *twice));
  return seeds;
}

Result<Shard> parse_shard(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, '/');
  if (parts.size() == 2) {
    const auto index = whole_number(parts[0]);
    const auto count = whole_number(parts[1]);
    if (index && count && *index >= 1 && *index <= *count) return Shard{*index, *count};
  }
  return Error{fmt::format("--shard '{}' is not a shard; allowed: i/n with 1 <= i <= n, such as 1/4", text)};
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t start = 0;;) {
    const std::size_t stop = text.find(separator, start);
    parts.push_back(text.substr(start, stop == std::string_view::npos ? stop : stop - start));
    if (stop == std::string_view::npos) return parts;
    start = stop + 1;
  }
}

Result<std::vector<std::string>> parse_names(std::string_view text, std::string_view what) {
  std::vector<std::string> names;
  for (const std::string_view part : split(text, ',')) {
    if (part.empty()) return Error{fmt::format("{} '{}': empty name; allowed: names joined by commas", what, text)};
    if (std::find(names.begin(), names.end(), part) != names.end()) {
      return Error{fmt::format("{} '{}': '{}' is named twice", what, text, part)};
    }
    names.emplace_back(part);
  }
  return names;
}

}  // namespace mortise::sim
