#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mortise::kube {

/// Pod annotation: after what the place of a pod was chosen, for who wants to repeat the decision (docs/replay.md).
inline constexpr std::string_view kDecisionAnnotation = "mortise.dev/decision";

struct DecisionStamp {
  std::uint64_t order = 0;  ///< among the decisions of one process, from 1
  std::string nodes;        ///< resource version up to which changes of nodes were known
  std::string pods;         ///< likewise of pods

  /// `{"order":17,"nodes":"1200","pods":"1234"}`
  std::string text() const;

  friend bool operator==(const DecisionStamp&, const DecisionStamp&) = default;
};

}  // namespace mortise::kube
