#include "sim/run_store.h"

#include <fmt/format.h>

#include <ostream>

#include "scheduler/base/rng.h"
#include "sim/files.h"
#include "sim/report.h"

namespace mortise::sim {

namespace fs = std::filesystem;

namespace {

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

/// A name that is safe in a file name; different names stay different.
std::string file_part(std::string_view name) {
  std::string part;
  bool changed = false;
  for (const char c : name) {
    part += is_plain(c) ? c : '_';
    changed = changed || !is_plain(c);
  }
  return changed ? fmt::format("{}.{:08x}", part, hash_text(name) >> 32) : part;
}

}  // namespace

Status RunStore::open() const {
  return ensure_writable_dir(dir_);
}

fs::path RunStore::path(std::string_view trace, std::string_view policy, std::uint64_t seed) const {
  return dir_ / fmt::format("{}_{}_{}.json", file_part(trace), file_part(policy), seed);
}

RunStore::Found RunStore::find(std::string_view trace, std::string_view policy, std::uint64_t seed,
                               std::string_view inputs_digest) const {
  const fs::path file = path(trace, policy, seed);
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return {};
  const auto text = read_file(file);
  if (!text) return {std::nullopt, text.message()};
  auto stored = parse_run_file(*text);
  if (!stored) return {std::nullopt, fmt::format("{}: damaged", file.string())};
  if (stored->inputs_digest != inputs_digest) return {std::nullopt, fmt::format("{}: of other inputs", file.string())};
  return {std::move(stored->run), ""};
}

Status RunStore::save(const ReplayResult& run, std::string_view inputs_digest) const {
  const std::string text = run_file(run, inputs_digest);
  return write_file(path(run.trace, run.policy, run.seed), [&](std::ostream& out) {
    out << text;
    return ok_status();
  });
}

}  // namespace mortise::sim
