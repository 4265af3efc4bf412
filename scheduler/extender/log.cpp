#include "scheduler/extender/log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <ctime>
#include <nlohmann/json.hpp>

namespace mortise::extender {
namespace {

using nlohmann::json;

constexpr Nanoseconds kMicrosecond = 1000;

std::string time_text(Nanoseconds since_1970) {
  const auto seconds = static_cast<std::time_t>(since_1970 / kSecond);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z", fmt::gmtime(seconds), since_1970 % kSecond / kMicrosecond);
}

/// As JSON writes it. What is not UTF-8 is replaced: names in requests may be anything.
std::string json_value(const LogField& field) {
  return std::visit([](const auto& value) { return json(value).dump(-1, ' ', false, json::error_handler_t::replace); },
                    field.value);
}

/// In logfmt a value stands as it is where that can be read back.
std::string text_value(const LogField& field) {
  if (const auto* text = std::get_if<std::string>(&field.value)) {
    const auto plain = [](unsigned char c) { return c > ' ' && c < 0x7f && c != '"' && c != '=' && c != '\\'; };
    if (!text->empty() && std::all_of(text->begin(), text->end(), plain)) return *text;
  }
  return json_value(field);
}

}  // namespace

const std::vector<std::string>& log_level_names() {
  static const std::vector<std::string> names = {"debug", "info", "warn", "error"};
  return names;
}

const std::vector<std::string>& log_format_names() {
  static const std::vector<std::string> names = {"text", "json"};
  return names;
}

void Log::write(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  if (!wants(level)) return;
  const std::string& name = log_level_names()[static_cast<std::size_t>(level)];
  const bool as_json = format_ == LogFormat::kJson;
  std::string line = as_json ? R"({"ts":")" : "ts=";
  std::string rest = as_json ? fmt::format(R"(","level":"{}","event":"{}")", name, event)
                             : fmt::format(" level={} event={}", name, event);
  for (const LogField& field : fields) {
    rest += as_json ? fmt::format(R"(,"{}":{})", field.key, json_value(field))
                    : fmt::format(" {}={}", field.key, text_value(field));
  }
  rest += as_json ? "}\n" : "\n";
  const std::lock_guard lock(mutex_);
  line += time_text(clock_.since_1970()) + rest;
  std::fwrite(line.data(), 1, line.size(), out_);
  std::fflush(out_);
}

}  // namespace mortise::extender
