#pragma once

#include <cstdint>

namespace mortise {

using MilliCpu = std::int64_t;     ///< 1/1000 of a CPU core
using Bytes = std::int64_t;        ///< memory
using MilliGpu = std::int64_t;     ///< 1/1000 of one GPU
using Nanoseconds = std::int64_t;  ///< time and durations

inline constexpr MilliGpu kWholeGpu = 1000;
inline constexpr Bytes kMiB = 1024 * 1024;
inline constexpr Nanoseconds kSecond = 1'000'000'000;

}  // namespace mortise
