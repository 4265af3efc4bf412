#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "scheduler/base/ids.h"
#include "scheduler/placement/device_set.h"
#include "scheduler/placement/domains.h"
#include "scheduler/placement/request.h"

namespace mortise::placement {

/// Members of a gang that are alike.
struct GangRole {
  std::string name;
  PodRequest pod;
  std::int32_t count = 1;  ///< members that want a place
  std::int32_t min = 1;    ///< 0..count: so many of them, or nobody
  /// The nodes it may go to now: its selectors, the nodes' taints and the question allow them. Empty: any.
  std::optional<std::span<const NodeId>> allowed{};
  /// The nodes it could ever go to, by selectors and taints alone; for what never fits. Empty: any.
  std::optional<std::span<const NodeId>> eligible{};
};

struct GangRequest {
  std::vector<GangRole> roles;
  std::int32_t min = 0;           ///< so many members of all roles together, or nobody; 0: as the roles say
  std::string required_level;     ///< all in one domain of it; empty: anywhere
  std::string preferred_level;    ///< finer ones are not asked for; empty, or not the cluster's: the finest
  std::span<const NodeId> bound;  ///< where members are that have a place already
};

struct GangMember {
  std::uint32_t role = 0;
  std::uint32_t index = 0;  ///< of the members of its role
  NodeId node;
  DeviceSet devices;
};

/// Where everybody goes. The members are in the order in which it was foreseen that they come.
struct GangPlan {
  std::vector<GangMember> members;
  int level = Domains::kCluster;  ///< the finest of which one domain holds all of them, those bound before included
  DomainId domain;                ///< that domain; of a single node the one it is in
  /// How many domains of each finer level they are in, nodes last: one number per level below `level`.
  std::vector<std::int64_t> domains{};
};

enum class GangReason : std::uint8_t {
  kNoRoom,        ///< not now
  kNeverFits,     ///< not even if nothing else were on the nodes
  kBoundApart,    ///< members that have a place are in several domains of the required level
  kUnknownLevel,  ///< the cluster does not have the required level
  kInvalid,       ///< no roles, or counts that make no sense
};
inline constexpr int kGangReasonCount = static_cast<int>(GangReason::kInvalid) + 1;

/// The constant text of a reason, e.g. "GangNoRoom: the gang does not fit as a whole".
std::string_view reason_text(GangReason reason);
std::string_view reason_name(GangReason reason);

struct GangRejected {
  GangReason reason = GangReason::kInvalid;
  std::string detail;  ///< the arithmetic: "needs 4 x 8 GPUs in one rack; the best rack r7 has room for 3"
  bool exact = true;   ///< false: the search was cut short, so a way may have been missed
};

/// What is said after `detail` where `exact` is false.
inline constexpr std::string_view kCutShort = " (the search was cut short)";

using GangDecision = std::variant<GangPlan, GangRejected>;

/// The most members of a gang, and the most of its roles that ask for different things.
inline constexpr std::int32_t kMaxGangMembers = 16'384;

/// "4 x 8 GPUs", "2 x 500 milli-GPU", "1 x 4000 milli-CPU".
std::string count_text(std::int64_t count, const PodRequest& pod);

/// Roles are there, counts are not negative, no minimum is above its count.
Status check_gang(const GangRequest& request);

}  // namespace mortise::placement
