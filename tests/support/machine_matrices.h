#pragma once

#include <initializer_list>
#include <utility>

#include "scheduler/topology/gpu_set.h"
#include "scheduler/topology/pair_matrix.h"

namespace mortise::test {

using GpuPairs = std::initializer_list<std::pair<int, int>>;

inline topology::GpuSet gpus(std::initializer_list<int> members) {
  topology::GpuSet set = 0;
  for (const int gpu : members) set |= topology::gpu_bit(gpu);
  return set;
}

inline void set_pairs(topology::PairMatrix& matrix, GpuPairs pairs, std::int64_t value) {
  for (const auto& [a, b] : pairs) matrix.set(a, b, value);
}

inline topology::PairMatrix alike(int count, std::int64_t value) {
  topology::PairMatrix matrix(count);
  for (int a = 0; a < count; ++a) {
    for (int b = 0; b < a; ++b) matrix.set(a, b, value);
  }
  return matrix;
}

/// The hybrid cube mesh of a DGX-1 with V100: two NVLinks (50 GB/s) or one between some pairs, PCIe between sockets
/// (9 GB/s) elsewhere. In GB/s.
inline topology::PairMatrix dgx1_volta() {
  topology::PairMatrix matrix = alike(8, 9);
  set_pairs(matrix, {{0, 3}, {0, 4}, {1, 2}, {1, 5}, {2, 3}, {4, 7}, {5, 6}, {6, 7}}, 50);
  set_pairs(matrix, {{0, 1}, {0, 2}, {1, 3}, {2, 6}, {3, 7}, {4, 5}, {4, 6}, {5, 7}}, 25);
  return matrix;
}

/// go-gpuallocator's scores of the same machine: 100 per NVLink, and 50 below one PCIe switch, 30 below one host
/// bridge, 10 between sockets.
inline topology::PairMatrix dgx1_volta_scores() {
  topology::PairMatrix matrix = alike(8, 10);
  set_pairs(matrix, {{0, 4}, {1, 5}}, 210);
  set_pairs(matrix, {{2, 6}, {3, 7}}, 110);
  set_pairs(matrix, {{0, 1}, {4, 5}}, 150);
  set_pairs(matrix, {{2, 3}, {6, 7}}, 250);
  set_pairs(matrix, {{0, 3}, {1, 2}, {4, 7}, {5, 6}}, 230);
  set_pairs(matrix, {{0, 2}, {1, 3}, {4, 6}, {5, 7}}, 130);
  return matrix;
}

}  // namespace mortise::test
