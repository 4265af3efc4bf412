#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace mortise::placement {

/// The most GPU devices one node may have.
inline constexpr int kMaxDevices = 128;

/// A set of device indices 0..127 of one node.
class DeviceSet {
 public:
  void insert(int device) { words_[word(device)] |= bit(device); }
  bool contains(int device) const { return (words_[word(device)] & bit(device)) != 0; }
  int size() const { return std::popcount(words_[0]) + std::popcount(words_[1]); }
  bool empty() const { return (words_[0] | words_[1]) == 0; }
  friend bool operator==(const DeviceSet&, const DeviceSet&) = default;

  /// Calls f(index) in ascending order.
  template <class F>
  void for_each(F&& f) const {
    for (int w = 0; w < 2; ++w) {
      for (std::uint64_t rest = words_[static_cast<std::size_t>(w)]; rest != 0; rest &= rest - 1) {
        f(w * 64 + std::countr_zero(rest));
      }
    }
  }

 private:
  static std::size_t word(int device) { return static_cast<std::size_t>(device) / 64; }
  static std::uint64_t bit(int device) { return std::uint64_t{1} << (static_cast<unsigned>(device) % 64); }

  std::array<std::uint64_t, 2> words_{};
};

}  // namespace mortise::placement
