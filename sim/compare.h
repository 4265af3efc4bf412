#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/base/result.h"
#include "sim/inputs.h"
#include "sim/option_values.h"
#include "sim/replay.h"

namespace mortise::sim {

/// A matrix of simulations: every trace with every policy and every seed.
struct CompareSpec {
  const ClusterInput& cluster;
  const std::vector<TraceInput>& traces;
  const ArrivalPlan& arrival;
  std::vector<std::string> policies;
  std::vector<std::uint64_t> seeds;
  std::size_t threads = 1;
  Shard shard;
  std::string out_dir;  ///< empty: results are not kept in files
};

/// Mean and extremes over the seeds that have a value.
struct Spread {
  double mean = 0;
  double min = 0;
  double max = 0;
  std::int64_t seeds = 0;

  friend bool operator==(const Spread&, const Spread&) = default;
};

/// The measures at one moment of the arrivals, over the seeds; empty where no seed has a value.
struct Moment {
  std::optional<Spread> allocation_pct;
  std::optional<Spread> frag_pct_of_idle;
  std::optional<Spread> frag_pct_of_capacity;
};

/// Arrival percentages at which the published tables give allocation.
inline constexpr std::int64_t kMoments[] = {95, 100, 130};

/// One policy on one trace.
struct PolicySummary {
  std::string trace;
  std::string policy;
  std::int64_t seeds = 0;
  std::vector<Moment> at;  ///< in the order of kMoments
  Moment final;
  std::optional<Spread> gangs_placed_pct{};  ///< of those that arrived; empty: no gang arrived
};

struct Comparison {
  std::string arrival;
  std::vector<PolicySummary> summaries;  ///< by trace, then policy
  std::vector<ReplayResult> runs;        ///< by trace, then policy, then seed; those of this shard only
};

struct CompareHooks {
  std::function<void()> on_run_done;                ///< called from several threads
  std::function<void(const std::string&)> on_note;  ///< one line for people; called from several threads
  const std::atomic<bool>* stop = nullptr;          ///< set: no further run is started
};

/// Refuses a policy that is not known, before anything costly is done.
Status check_policies(const std::vector<std::string>& policies);

/// How many runs the matrix has for this shard.
std::size_t run_count(const CompareSpec& spec);

/// Runs what is not yet in `out_dir`. The result does not depend on the number of threads. When stopped early, the
/// error says how many runs are finished; their files stay usable.
Result<Comparison> compare(const CompareSpec& spec, const CompareHooks& hooks = {});

/// The summaries of runs that stand by trace, then policy.
std::vector<PolicySummary> summarise(const std::vector<ReplayResult>& runs);

}  // namespace mortise::sim
