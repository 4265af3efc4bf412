#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/base/units.h"
#include "traces/workload.h"

namespace mortise::traces {

/// One arrival of a replay without time: a pod, or all pods of a gang.
struct Arrival {
  std::uint32_t pod = 0;    ///< index into Trace::pods; of a gang its first
  std::string name;         ///< the pod's or gang's name; `<name>-clone-<n>`, n from 1, where it is repeated
  std::uint32_t clone = 0;  ///< that n; 0: the first time
};

/// The name of a pod the n-th time that it, or its gang, comes again; the pod's own for 0.
std::string clone_name(const std::string& name, std::uint32_t n);

/// The most pods that may arrive in a replay.
inline constexpr std::size_t kMaxArrivals = 10'000'000;
inline constexpr double kMaxInflation = 1000;

/// The arrivals of the published study ("tune"): all pods in random order, then, while their GPU demand is below
/// ratio x capacity, pods drawn with replacement until the next would exceed it; or, where it is above, without
/// random pods until it is not. Same trace, ratio, capacity and seed: same arrivals. Refuses a trace that cannot
/// reach the target because it asks for no GPUs, or only with more than kMaxArrivals. A gang comes, is drawn and is
/// left out as one, with the demand of all its members; their largest share of one GPU decides whether it would exceed.
Result<std::vector<Arrival>> inflate(const Trace& trace, double ratio, MilliGpu capacity, std::uint64_t seed);

/// Arrivals from a list of names, one a line: of gangs, and of pods that are in none. `file_name` is only for messages.
Result<std::vector<Arrival>> read_order(const Trace& trace, std::istream& in, const std::string& file_name);

struct Inflate {
  double ratio = 0;
};
struct OrderFile {
  std::string path;
};
using ArrivalSpec = std::variant<Inflate, OrderFile>;

/// "inflate:1.3" or "order:FILE".
Result<ArrivalSpec> parse_arrival(std::string_view text);
/// How an ArrivalSpec is written, for help texts.
std::string_view arrival_forms();

}  // namespace mortise::traces
