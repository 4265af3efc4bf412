#pragma once

#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <mutex>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "scheduler/base/clock.h"

namespace mortise::extender {

enum class LogLevel { kDebug, kInfo, kWarn, kError };
enum class LogFormat {
  kText,  ///< `ts=2025-01-31T23:59:59.000001Z level=info event=bound pod=default/train-0`, values quoted where needed
  kJson,  ///< `{"ts":"...","level":"info","event":"bound","pod":"default/train-0"}`
};

/// Accepted spellings, in the order of the enumerators.
const std::vector<std::string>& log_level_names();
const std::vector<std::string>& log_format_names();

struct LogField {
  std::string_view key;
  std::variant<std::string, std::int64_t, double> value;
};

/// What happened, one line each: the time, how much it matters, the event's name, then its own fields. Thread-safe; a
/// line is written whole.
class Log {
 public:
  /// `out` and `clock` must outlive it.
  Log(std::FILE* out, const Clock& clock, LogLevel least, LogFormat format)
      : out_(out), clock_(clock), least_(least), format_(format) {}

  bool wants(LogLevel level) const { return level >= least_; }
  /// `event` and the keys are words of lower-case letters and `_`.
  void write(LogLevel level, std::string_view event, std::initializer_list<LogField> fields);

 private:
  std::FILE* out_;
  const Clock& clock_;
  const LogLevel least_;
  const LogFormat format_;
  std::mutex mutex_;  // keeps lines in the order of their times
};

}  // namespace mortise::extender
