#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mortise::placement {

/// Members of a gang that ask for the same and may go to the same nodes are of one kind.
inline constexpr std::size_t kMaxKinds = 16;

/// So many members of each kind, fewer than 32,768.
struct Mix {
  std::array<std::uint16_t, kMaxKinds> of{};

  friend auto operator<=>(const Mix&, const Mix&) = default;
  /// As many of every kind, or more. Asked millions of times for a plan, so four counts are compared at once: the top
  /// bit of each is free, and stays set where nothing has to be borrowed from it.
  bool covers(const Mix& other) const {
    constexpr std::uint64_t kTops = 0x8000'8000'8000'8000;
    using Fours = std::array<std::uint64_t, kMaxKinds / 4>;
    const auto have = std::bit_cast<Fours>(of);
    const auto need = std::bit_cast<Fours>(other.of);
    for (std::size_t i = 0; i < have.size(); ++i) {
      if ((((have[i] | kTops) - need[i]) & kTops) != kTops) return false;
    }
    return true;
  }
  bool empty() const { return *this == Mix{}; }
  std::int64_t total() const;
};

/// Kind by kind: the smaller number; the larger one; the sum, but no more than `cap`; the difference of two of which
/// `a` covers `b`.
Mix smaller(const Mix& a, const Mix& b);
Mix larger(const Mix& a, const Mix& b);
Mix capped_sum(const Mix& a, const Mix& b, const Mix& cap);
Mix difference(const Mix& a, const Mix& b);

/// The largest mixes that there is room for: none covers another, descending. Whatever one of them covers fits, too.
using Mixes = std::vector<Mix>;

/// Adds up rooms, none counted beyond what the gang needs. Of many mixes some are left out: what is kept still fits.
class MixSums {
 public:
  static constexpr std::size_t kMaxMixes = 128;
  static constexpr std::size_t kMaxMixesOfLarge = 16;  ///< of gangs with more than kLarge members
  static constexpr std::int64_t kLarge = 64;

  explicit MixSums(const Mix& cap) : cap_(cap), most_(cap.total() > kLarge ? kMaxMixesOfLarge : kMaxMixes) {}

  /// Leaves the largest ones, in order. False: of those, some were left out.
  bool keep_largest(Mixes& mixes);
  Mixes sum(const Mixes& a, const Mixes& b);
  Mixes times(const Mixes& one, std::size_t count);
  const Mix& cap() const { return cap_; }
  /// Nothing was left out so far.
  bool exact() const { return exact_; }

 private:
  Mix cap_;
  std::size_t most_;
  bool exact_ = true;
};

}  // namespace mortise::placement
