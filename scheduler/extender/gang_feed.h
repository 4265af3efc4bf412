#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "scheduler/base/clock.h"
#include "scheduler/base/result.h"
#include "scheduler/extender/gangs.h"
#include "scheduler/kube/objects/gang.h"
#include "scheduler/kube/objects/gang_objects.h"
#include "scheduler/kube/objects/gang_terms.h"
#include "scheduler/kube/objects/pod.h"

namespace mortise::extender {

/// From pods and group objects, as they come, to members of gangs. Not synchronised.
class GangFeed {
 public:
  /// It must outlive the feed.
  explicit GangFeed(Gangs& gangs) : gangs_(gangs) {}

  /// Nobody tells when a pod is gone: a member that has no place, and that has not been asked about for as long as
  /// asked pods are remembered, is. The clock must outlive the feed.
  void forget_by(const Clock& clock) { clock_ = &clock; }

  /// Whether the pod, which waits or is bound, is a member of a gang that is placed as a whole; then it is one from now
  /// on. Members of native pod groups are not: kube-scheduler decides about these together itself. An error is the
  /// fault of the pod or its group object. A member of the same name and another UID is gone.
  Result<bool> see(const kube::Pod& pod);
  /// The pod is like this now, whatever has become of it.
  void update(const kube::Pod& pod);
  /// What bound members say of their gangs' plans.
  std::vector<SlotClaim> claims() const;
  /// Before the bookings forget it.
  void gone(std::string_view uid);
  /// A list of the pods is asked for: members that come to be known from now on need not be in it.
  void list_starts() { ++lists_begun_; }
  /// There were no other pods when the list started; with `announced` false, there are none now.
  void keep_only(const std::unordered_set<std::string_view>& uids, bool announced);

  void put(std::string_view api_group, const kube::GroupObject& object);
  void remove(std::string_view api_group, kube::GroupKind kind, std::string_view ns, std::string_view name);
  /// All there are of a kind in one API group.
  void replace(kube::GroupKind kind, std::string_view api_group, const std::vector<kube::GroupObject>& objects);

 private:
  using Name = std::pair<std::string, std::string>;  // namespace and name

  struct Known {
    kube::Pod pod;
    std::uint64_t lists_begun = 0;  // when it came to be known
    std::string gang{};             // key of what it says this of; empty: it has said nothing yet
    kube::GangSaying says{};
    Nanoseconds asked = 0;
  };
  /// What all members of a gang say, and the rest of its spec; forgotten with the last of them.
  struct Said {
    kube::GangTerms terms;
    GangSpec spec;
    std::map<std::string, std::int32_t> minima{};  // of gangs that start together those that are known, by name
  };

  void leave(std::string_view uid);
  void end_namesake(const kube::Pod& pod);
  void forget_unasked();
  Known& remember(const kube::Pod& pod);
  bool say(Known& member, const kube::GangRef& gang);
  void unsay(Known& member);
  void tell_terms(const std::string& key);
  GangSpec spec_of(const kube::GangRef& gang, const placement::PodRequest& pod);
  void join(const kube::GangRef& gang, GangSpec& spec);
  void look_again(kube::GroupKind kind, std::string_view ns);

  Gangs& gangs_;
  kube::GroupObjects objects_;
  const Clock* clock_ = nullptr;                            // null: somebody tells when a pod is gone
  std::map<std::string, Known, std::less<>> pods_;          // those that say they are of a gang, by UID
  std::map<Name, std::string> by_name_;                     // their UIDs
  std::set<std::pair<Nanoseconds, std::string>> by_asked_;  // their UIDs; with a clock only
  std::uint64_t lists_begun_ = 0;
  std::map<std::string, Said> said_;         // by key of the gang
  std::set<std::string, std::less<>> gone_;  // lately: kube-scheduler may still ask about them
  std::deque<std::string> gone_in_order_;
  /// Namespace and name of the objects there are, by kind and API group.
  std::map<std::pair<kube::GroupKind, std::string>, std::set<std::pair<std::string, std::string>>> names_;
};

}  // namespace mortise::extender
