#pragma once

#include <cstdint>
#include <string_view>

#include "scheduler/base/result.h"

namespace mortise {

/// A Kubernetes resource quantity, held exactly to a billionth.
/// Grammar (k8s.io/apimachinery/pkg/api/resource, type Quantity): an optional sign, digits with an optional point,
/// and one suffix of: none, n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or e/E with a signed whole exponent.
/// Digits finer than a billionth round away from zero, as Kubernetes does.
class Quantity {
 public:
  /// Refuses text outside the grammar, and amounts beyond 2^63-1.
  static Result<Quantity> parse(std::string_view text);
  static Quantity from_whole(std::int64_t value);

  /// The amount, if it is a whole number.
  Result<std::int64_t> whole() const;
  /// The amount rounded up to a whole number (what `Quantity.Value()` gives).
  std::int64_t rounded_up() const;
  /// Thousandths, rounded up (what `Quantity.MilliValue()` gives); saturates at the range of the type.
  std::int64_t milli_rounded_up() const;
  bool negative() const { return nano_ < 0; }

 private:
  __extension__ using Wide = __int128;
  explicit Quantity(Wide nano) : nano_(nano) {}

  Wide nano_;
};

}  // namespace mortise
