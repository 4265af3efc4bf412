#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "scheduler/base/units.h"
#include "scheduler/placement/decision.h"
#include "scheduler/placement/request.h"

namespace mortise::extender {

/// A member of a pod group that was asked about in the group's trial.
struct TrialMember {
  placement::PodRequest pod;
  std::optional<placement::Placed> placed;  ///< none: no node passed, or it is not known which one is taken
  Nanoseconds asked = 0;
  bool refused_alone = false;  ///< the question named one node, and it did not pass
};

/// What members of a native pod group (spec.schedulingGroup) were told. kube-scheduler asks about one after the other
/// in one cycle, assumes each in a snapshot of its own, and may revert all and begin again with other candidates,
/// without a word to us. So an answer counts against the members that are asked about after it in the same trial, and
/// against nobody else; it ends with the trial, or kEndsAfter the question. Bounded: beyond kMaxMembers, the group that
/// asked least recently is forgotten.
class GroupTrials {
 public:
  static constexpr std::size_t kMaxMembers = 65536;
  static constexpr Nanoseconds kEndsAfter = 30 * kSecond;

  explicit GroupTrials(std::size_t max_members = kMaxMembers) : max_members_(max_members) {}

  /// The member is about to be asked about. If it was before, a new trial begins and the old one's answers are dropped;
  /// except that after a nominated node did not pass, kube-scheduler asks about the same member again, with all nodes.
  void ask(std::string_view group, std::string_view uid, Nanoseconds now);
  /// What came of it.
  void tell(std::string_view group, TrialMember member);
  /// Its place is not tentative any more; it was asked about all the same.
  void settle(std::string_view group, std::string_view uid);
  /// The members whose answers count against this one, in the order asked.
  std::vector<const TrialMember*> others(std::string_view group, std::string_view uid, Nanoseconds now);
  std::size_t size() const { return members_; }

 private:
  struct Trial {
    std::string group;
    std::vector<TrialMember> members;
    Nanoseconds last = 0;
  };
  Trial* find(std::string_view group, Nanoseconds now);
  void forget(std::list<Trial>::iterator trial);

  std::size_t max_members_;
  std::size_t members_ = 0;
  std::list<Trial> by_age_;  // the one asked about least recently first
  std::unordered_map<std::string_view, std::list<Trial>::iterator> by_group_;  // keys point into by_age_
};

}  // namespace mortise::extender
