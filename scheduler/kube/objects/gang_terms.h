#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/kube/objects/gang.h"

namespace mortise::kube {

/// What one member says of its gang, of which there can be only one.
struct GangSaying {
  std::string identity;      ///< of its own gang, where several start together
  std::int32_t minimum = 0;  ///< 0: not known yet
  std::vector<std::string> required_levels;
  std::vector<std::string> preferred_levels;

  friend bool operator==(const GangSaying&, const GangSaying&) = default;
};
GangSaying saying_of(const GangRef& gang);

/// What the members of a gang, or of gangs that start together, say together, in whatever order they come. A level that
/// a part of the gang asks for holds for all of it: that is stricter, and never breaks what was asked.
class GangTerms {
 public:
  void add(const GangSaying& saying) { count(saying, 1); }
  /// It was added before.
  void drop(const GangSaying& saying) { count(saying, -1); }
  bool empty() const { return members_ == 0; }

  /// Empty: none.
  std::string required_level() const { return required_.empty() ? std::string() : required_.begin()->first; }
  /// Of several the first by name; empty: none.
  std::string preferred_level() const { return preferred_.empty() ? std::string() : preferred_.begin()->first; }
  /// Why the gang cannot be placed while they say this: whose word counts would be a guess. Empty: it can.
  std::string conflict() const;

 private:
  void count(const GangSaying& saying, int sign);

  int members_ = 0;
  std::map<std::pair<std::string, std::int32_t>, int> minima_;  // by identity and minimum: members that say so
  std::map<std::string, int> required_;
  std::map<std::string, int> preferred_;
};

}  // namespace mortise::kube
