#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "scheduler/placement/node_insides.h"

namespace mortise::extender {

/// Who saw which GPUs pods hold.
enum class Witness { kReport, kDcgm, kAnnotation };
inline constexpr std::array<std::string_view, 3> kWitnesses = {"nrt", "dcgm", "annotation"};

/// What was seen of the pods of a node last.
struct Sighting {
  Witness by = Witness::kReport;
  bool mismatch = false;  ///< it was not among what had been foreseen
  std::string what;       ///< a sentence for people, without names of pods
};

/// What came of all that was seen. Not synchronised.
class Observations {
 public:
  struct Counts {
    std::uint64_t used = 0;        ///< told something new
    std::uint64_t mismatches = 0;  ///< of these
  };

  void note(std::string_view node, placement::Observed outcome, Witness by, std::string what) {
    if (outcome == placement::Observed::kNothingNew) return;
    const bool mismatch = outcome == placement::Observed::kMismatch;
    Counts& counts = counts_[static_cast<std::size_t>(by)];
    ++counts.used;
    counts.mismatches += mismatch ? 1 : 0;
    last_.insert_or_assign(std::string(node), Sighting{by, mismatch, std::move(what)});
  }
  /// Nobody could be asked for DCGM series, or the answer was of no use.
  void note_failed_query() { ++failed_queries_; }
  void forget(std::string_view node) {
    if (const auto found = last_.find(node); found != last_.end()) last_.erase(found);
  }

  /// Null: nothing was seen there yet.
  const Sighting* last(std::string_view node) const {
    const auto found = last_.find(node);
    return found == last_.end() ? nullptr : &found->second;
  }
  const std::array<Counts, kWitnesses.size()>& counts() const { return counts_; }
  std::uint64_t failed_queries() const { return failed_queries_; }

 private:
  std::array<Counts, kWitnesses.size()> counts_{};
  std::uint64_t failed_queries_ = 0;
  std::map<std::string, Sighting, std::less<>> last_;  // by node
};

}  // namespace mortise::extender
