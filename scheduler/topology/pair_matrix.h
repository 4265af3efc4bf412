#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mortise::topology {

/// One number per pair of GPUs of a machine, addressed by position 0..gpus-1. Symmetric; 0 on the diagonal.
/// Bandwidths in MB/s or scores of go-gpuallocator; `graph.h` makes both.
struct PairMatrix {
  int gpus = 0;
  std::vector<std::int64_t> values;  ///< gpus * gpus, row by row

  explicit PairMatrix(int count = 0)
      : gpus(count), values(static_cast<std::size_t>(count) * static_cast<std::size_t>(count)) {}

  std::int64_t at(int a, int b) const { return values[place(a, b)]; }
  void set(int a, int b, std::int64_t value) {
    values[place(a, b)] = value;
    values[place(b, a)] = value;
  }
  friend bool operator==(const PairMatrix&, const PairMatrix&) = default;

 private:
  std::size_t place(int a, int b) const {
    assert(a >= 0 && a < gpus && b >= 0 && b < gpus);
    return static_cast<std::size_t>(a) * static_cast<std::size_t>(gpus) + static_cast<std::size_t>(b);
  }
};

}  // namespace mortise::topology
