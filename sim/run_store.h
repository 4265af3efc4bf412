#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "scheduler/base/result.h"
#include "sim/replay.h"

namespace mortise::sim {

/// A folder of finished runs, one JSON file each.
class RunStore {
 public:
  explicit RunStore(std::filesystem::path dir) : dir_(std::move(dir)) {}

  /// Makes the folder; an error when files cannot be made in it.
  Status open() const;

  std::filesystem::path path(std::string_view trace, std::string_view policy, std::uint64_t seed) const;

  struct Found {
    std::optional<ReplayResult> run;
    std::string note;  ///< why a file that is there cannot be used; empty when there is none or it can
  };
  Found find(std::string_view trace, std::string_view policy, std::uint64_t seed, std::string_view inputs_digest) const;

  Status save(const ReplayResult& run, std::string_view inputs_digest) const;

 private:
  std::filesystem::path dir_;
};

}  // namespace mortise::sim
