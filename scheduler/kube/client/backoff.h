#pragma once

#include "scheduler/base/rng.h"
#include "scheduler/base/units.h"

namespace mortise::kube {

/// Waiting times that double from `first` to `longest`; each is drawn from its upper half, so that many clients of one
/// server that comes back do not all ask at once.
class Backoff {
 public:
  Backoff(Nanoseconds first, Nanoseconds longest) : first_(first), longest_(longest), next_(first) {}

  Nanoseconds next(Rng& rng);
  void reset() { next_ = first_; }

 private:
  Nanoseconds first_;
  Nanoseconds longest_;
  Nanoseconds next_;
};

}  // namespace mortise::kube
