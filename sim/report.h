#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/compare.h"
#include "sim/replay.h"

namespace mortise::sim {

/// Wall-clock seconds of a whole `replay`, for `--timings`.
struct Timings {
  double read = 0;
  PhaseTimes phases;
};

/// The JSON document of one run; docs/replay.md lists the fields. Without `timings` the bytes depend on the run only.
std::string run_json(const ReplayResult& run, const std::optional<Timings>& timings);

/// The content of a run file: the run with a digest of its inputs, so that a later comparison can use it again, and
/// a digest of itself, so that damage is seen.
std::string run_file(const ReplayResult& run, std::string_view inputs_digest);

/// A run file as read back.
struct StoredRun {
  std::string inputs_digest;
  ReplayResult run;
};

/// Empty when the text is not an undamaged run file.
std::optional<StoredRun> parse_run_file(const std::string& text);

/// The JSON document of a comparison.
std::string comparison_json(const Comparison& comparison);

}  // namespace mortise::sim
