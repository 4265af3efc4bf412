#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>

namespace mortise::topology {

/// A set of small numbers (CPU ids, positions of devices): a plain value without allocation.
class IndexSet {
 public:
  static constexpr std::size_t kCapacity = 1024;

  bool contains(std::size_t i) const { return (words_[i / 64] >> (i % 64) & 1) != 0; }
  void insert(std::size_t i) { words_[i / 64] |= std::uint64_t{1} << (i % 64); }
  void erase(std::size_t i) { words_[i / 64] &= ~(std::uint64_t{1} << (i % 64)); }

  std::size_t count() const {
    std::size_t n = 0;
    for (const std::uint64_t word : words_) n += static_cast<std::size_t>(std::popcount(word));
    return n;
  }
  bool empty() const { return *this == IndexSet{}; }
  bool is_subset_of(const IndexSet& other) const { return (*this - other).empty(); }

  IndexSet& operator|=(const IndexSet& other) {
    return combine(other, [](auto a, auto b) { return a | b; });
  }
  IndexSet& operator&=(const IndexSet& other) {
    return combine(other, [](auto a, auto b) { return a & b; });
  }
  IndexSet& operator-=(const IndexSet& other) {
    return combine(other, [](auto a, auto b) { return a & ~b; });
  }
  friend IndexSet operator|(IndexSet a, const IndexSet& b) { return a |= b; }
  friend IndexSet operator&(IndexSet a, const IndexSet& b) { return a &= b; }
  friend IndexSet operator-(IndexSet a, const IndexSet& b) { return a -= b; }
  /// Any total order.
  friend auto operator<=>(const IndexSet&, const IndexSet&) = default;

  /// Calls f(i) for every member in ascending order.
  template <class F>
  void for_each(F&& f) const {
    for (std::size_t w = 0; w < words_.size(); ++w) {
      for (std::uint64_t word = words_[w]; word != 0; word &= word - 1) {
        f(w * 64 + static_cast<std::size_t>(std::countr_zero(word)));
      }
    }
  }

 private:
  template <class Op>
  IndexSet& combine(const IndexSet& other, Op op) {
    for (std::size_t w = 0; w < words_.size(); ++w) words_[w] = op(words_[w], other.words_[w]);
    return *this;
  }

  std::array<std::uint64_t, kCapacity / 64> words_{};
};

}  // namespace mortise::topology
