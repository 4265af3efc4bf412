#pragma once

#include <cstdint>

namespace mortise::traces {

// The largest figures a reader takes. Far above any machine, and small enough that sums over a whole file stay within
// 64 bits where they are not checked one by one.
inline constexpr std::int64_t kMaxCpuMilli = 1'000'000'000;  ///< a million cores
inline constexpr std::int64_t kMaxMemoryMib = 1LL << 30;     ///< one PiB
inline constexpr std::int64_t kMaxGpus = 128;                ///< of one node or pod
inline constexpr std::int64_t kMaxGangSize = 16'384;         ///< pods of one gang
inline constexpr std::size_t kMaxGangPods = 10'000'000;      ///< pods of all gangs of a trace
inline constexpr std::int64_t kMaxSeconds = 4'000'000'000;   ///< 126 years; two of them added still fit in nanoseconds

}  // namespace mortise::traces
