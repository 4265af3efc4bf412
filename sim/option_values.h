#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/base/result.h"

namespace mortise::sim {

/// A whole number without sign; `what` names it in the error.
Result<std::uint64_t> parse_number(std::string_view text, std::string_view what);

/// A whole number from 1 to `max`.
Result<std::uint64_t> parse_count(std::string_view text, std::string_view what, std::uint64_t max);

/// A plain decimal number above 0 and up to `max`.
Result<double> parse_positive(std::string_view text, std::string_view what, double max);

/// `42..51`, `42,45` or a mix; in the order given, each seed once.
Result<std::vector<std::uint64_t>> parse_seeds(std::string_view text);

/// Part `index` of `count` of the work, both from 1.
struct Shard {
  std::uint64_t index = 1;
  std::uint64_t count = 1;
};

/// `2/4`.
Result<Shard> parse_shard(std::string_view text);

/// What stands between the separators, also where that is nothing.
std::vector<std::string_view> split(std::string_view text, char separator);

/// The parts of `a,b,c`; refuses empty and repeated ones.
Result<std::vector<std::string>> parse_names(std::string_view text, std::string_view what);

}  // namespace mortise::sim
