#include "scheduler/placement/gang.h"

#include <array>

namespace mortise::placement {

namespace {
struct ReasonInfo {
  GangReason reason;
  std::string_view name;
  std::string_view text;
};

constexpr std::array<ReasonInfo, kGangReasonCount> kReasons = {{
    {GangReason::kNoRoom, "GangNoRoom", "GangNoRoom: the gang does not fit as a whole"},
    {GangReason::kNeverFits, "GangNeverFits", "GangNeverFits: the gang would not fit even on empty nodes"},
    {GangReason::kBoundApart, "GangBoundApart",
     "GangBoundApart: members that are placed are in several domains of the required level"},
    {GangReason::kUnknownLevel, "GangUnknownLevel", "GangUnknownLevel: no such topology level"},
    {GangReason::kInvalid, "GangInvalid", "GangInvalid: the gang's roles or counts make no sense"},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kReasons.size(); ++i) {
    if (static_cast<std::size_t>(kReasons[i].reason) != i) return false;
  }
  return true;
}
static_assert(in_order());
}  // namespace

std::string_view reason_text(GangReason reason) {
  return kReasons[static_cast<std::size_t>(reason)].text;
}
std::string_view reason_name(GangReason reason) {
  return kReasons[static_cast<std::size_t>(reason)].name;
}

std::string count_text(std::int64_t count, const PodRequest& pod) {
  const std::string times = std::to_string(count) + " x ";
  if (pod.gpus == 0) return times + std::to_string(pod.cpu) + " milli-CPU";
  if (pod.gpu_milli == kWholeGpu) return times + std::to_string(pod.gpus) + (pod.gpus == 1 ? " GPU" : " GPUs");
  return times + (pod.gpus == 1 ? "" : std::to_string(pod.gpus) + " x ") + std::to_string(pod.gpu_milli) + " milli-GPU";
}

Status check_gang(const GangRequest& request) {
  if (request.roles.empty()) return Error{"a gang needs at least one role"};
  std::int64_t members = 0;
  for (const GangRole& role : request.roles) {
    if (role.count < 0 || role.min < 0 || role.min > role.count) {
      return Error{"role '" + role.name + "': needs 0 <= min <= count, not min " + std::to_string(role.min) +
                   " of count " + std::to_string(role.count)};
    }
    if (role.pod.gpus < 0 || (role.pod.gpus > 1 && role.pod.gpu_milli < kWholeGpu)) {
      return Error{"role '" + role.name + "': asks for a negative number of GPUs, or for shares of several"};
    }
    members += role.count;
  }
  if (members < 1 || members > kMaxGangMembers) {
    return Error{"a gang has 1 to " + std::to_string(kMaxGangMembers) + " members, not " + std::to_string(members)};
  }
  if (request.min < 0 || request.min > members) {
    return Error{"min " + std::to_string(request.min) + " of " + std::to_string(members) + " members"};
  }
  return ok_status();
}

}  // namespace mortise::placement
