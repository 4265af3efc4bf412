#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "scheduler/base/quote.h"
#include "scheduler/kube/objects/field.h"
#include "scheduler/kube/objects/gang_decode.h"
#include "scheduler/kube/objects/gang_readers.h"
#include "scheduler/kube/objects/json_text.h"

namespace mortise::kube {
namespace {

constexpr const char* kTaskGroups = "yunikorn.apache.org/task-groups";

Status read_task_groups(const std::string& text, GangRef& gang) {
  const auto document = parse_json_text(text, {});
  if (!document) return document.error();
  std::optional<Error> mistake;
  for (const Field& group : Field(*document, mistake).items()) {
    const std::string name = group.member("name").text();
    const auto members = group.member("minMember").count(1, kMaxGangMembers);
    if (!mistake && !members) return Error{"task group " + quote(name) + " has no minMember"};
    gang.minimum = add_members(gang.minimum, members.value_or(0));
    gang.roles.push_back({name, members.value_or(0), {}});
  }
  if (mistake) return *mistake;
  if (gang.minimum > kMaxGangMembers) return Error{"more than " + std::to_string(kMaxGangMembers) + " members"};
  const bool known =
      std::any_of(gang.roles.begin(), gang.roles.end(), [&](const GangRole& role) { return role.name == gang.role; });
  if (!known) return Error{"has no task group " + quote(gang.role)};
  return ok_status();
}

}  // namespace

GangReading read_yunikorn_gang(const Pod& pod, const GroupObjects&) {
  const std::string role = annotation(pod, "yunikorn.apache.org/task-group-name");
  if (role.empty()) return no_gang();
  std::string application;
  for (const char* key : {"yunikorn.apache.org/app-id", "applicationId"}) {
    for (const std::string& value : {label(pod, key), annotation(pod, key)}) {
      if (application.empty()) application = value;
    }
  }
  if (application.empty()) return Error{"label applicationId is missing"};
  GangRef gang = named_gang(pod, application);
  gang.role = role;
  const auto groups = pod.annotations.find(kTaskGroups);
  if (groups == pod.annotations.end()) return Error{"annotation " + std::string(kTaskGroups) + " is missing"};
  const Status read = read_task_groups(groups->second, gang);
  if (!read) return Error{"annotation " + std::string(kTaskGroups) + ": " + read.message()};
  return std::optional(std::move(gang));
}

}  // namespace mortise::kube
