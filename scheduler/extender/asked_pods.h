#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "scheduler/base/ids.h"
#include "scheduler/base/units.h"
#include "scheduler/kube/objects/decision_stamp.h"
#include "scheduler/placement/decision.h"
#include "scheduler/placement/request.h"

namespace mortise::extender {

/// A pod that waits for a node, as the API server has it.
struct WaitingPod {
  placement::PodRequest request;
  std::string scheduler;  ///< spec.schedulerName
};

/// A pod that asked and is not bound: what it asked for, what it was told, and what came of that.
class AskedPod {
 public:
  placement::PodRequest request;
  bool ours = true;                       ///< false: the pod of a scheduler that we do not decide for
  std::string group;                      ///< its native pod group; empty: none
  std::optional<placement::Placed> plan;  ///< the node a decisive answer named
  std::string planned_node;               ///< its name: the id of a node that left may be another's by now
  kube::DecisionStamp decided;            ///< of `plan`
  int asks = 0;                           ///< how often `plan` was the answer
  std::optional<NodeId> fitting;          ///< a node that the last answer could give
  Nanoseconds answered = 0;               ///< when that was

  /// The planned node did not work out: not to be answered for 60 s, then twice as long each time, up to 10 min.
  void set_aside(NodeId node, Nanoseconds now);
  /// When the node may be answered again; empty when it may be now.
  std::optional<Nanoseconds> aside_until(NodeId node, Nanoseconds now) const;

 private:
  struct Aside {
    NodeId node;
    Nanoseconds until = 0;
    Nanoseconds span = 0;
  };
  std::vector<Aside> aside_;
};

/// The pods that asked, by UID. Bounded: a pod is forgotten 10 minutes after it last asked, and beyond kMaxAskedPods
/// the one that asked least recently goes first.
class AskedPods {
 public:
  static constexpr std::size_t kMaxAskedPods = 65536;
  static constexpr Nanoseconds kForgottenAfter = 600 * kSecond;

  explicit AskedPods(std::size_t max_pods = kMaxAskedPods) : max_pods_(max_pods) {}

  /// The pod's entry, made when missing; it counts as asked now.
  AskedPod& touch(std::string_view uid, Nanoseconds now);
  AskedPod* find(std::string_view uid, Nanoseconds now);
  /// The pod of this name that asked last. Looks at all of them.
  const AskedPod* find_named(std::string_view ns, std::string_view name, Nanoseconds now);
  void erase(std::string_view uid);
  std::size_t size() const { return by_uid_.size(); }

 private:
  struct Entry {
    std::string uid;
    Nanoseconds last_ask = 0;
    AskedPod pod;
  };
  void forget(Nanoseconds now);

  std::size_t max_pods_;
  std::list<Entry> by_age_;                                                  // the one that asked least recently first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_uid_;  // keys point into by_age_
};

}  // namespace mortise::extender
