#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace mortise::extender {

/// What must hold before questions are answered. Thread-safe.
class Readiness {
 public:
  enum class Condition {
    kSynced,   ///< the state of the cluster is known
    kLeader,   ///< no other replica answers
    kServing,  ///< the program is not about to end
  };

  /// Nothing is known of the cluster and of other replicas yet.
  Readiness();

  void set_met(Condition condition);
  /// `why` is one line for a person, and must not be empty.
  void set_unmet(Condition condition, std::string why);

  /// The condition is whatever `why_not` says at that moment (empty: met). It must be thread-safe, and outlive this.
  void ask_leader(std::function<std::string()> why_not);

  static bool knows(std::string_view name);

  /// `NAME: why` of every condition that is not met, a line each, but for the one named `exclude`; empty: ready.
  std::string report(std::string_view exclude = {}) const;
  /// Why the verbs cannot be answered; empty: they can, be it for the last time.
  std::string obstacle() const;

 private:
  static constexpr std::size_t kCount = 3;
  std::string report_first(std::size_t count, std::string_view exclude) const;

  mutable std::mutex mutex_;
  std::array<std::string, kCount> unmet_;  // why; empty: met
  std::function<std::string()> leader_why_not_;
};

}  // namespace mortise::extender
