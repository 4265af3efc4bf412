#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/base/ids.h"
#include "scheduler/base/units.h"

namespace mortise::extender {

/// A pod that has its node.
struct BoundPod {
  std::string uid;
  std::string ns;
  std::string name;
  std::string node;
  std::optional<AllocationId> allocation;  ///< empty: it is not on the books
  std::int32_t priority = 0;
  std::optional<Nanoseconds> start;  ///< on the handlers' clock; empty: it has not started
};

/// The pods that have their node, by UID and by node.
class BoundPods {
 public:
  BoundPods() = default;
  BoundPods(const BoundPods&) = delete;
  BoundPods& operator=(const BoundPods&) = delete;

  /// Replaces what was known of the UID.
  void put(BoundPod pod);
  void erase(std::string_view uid);
  /// Null: not known.
  const BoundPod* find(std::string_view uid) const;
  /// In no order.
  const std::vector<const BoundPod*>& on_node(std::string_view node) const;

 private:
  std::map<std::string, BoundPod, std::less<>> by_uid_;
  std::map<std::string, std::vector<const BoundPod*>, std::less<>> by_node_;  // point into by_uid_
};

}  // namespace mortise::extender
