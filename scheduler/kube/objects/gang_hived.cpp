#include <nlohmann/json.hpp>
#include <string>

#include "scheduler/base/quote.h"
#include "scheduler/kube/objects/field.h"
#include "scheduler/kube/objects/gang_decode.h"
#include "scheduler/kube/objects/gang_readers.h"
#include "scheduler/kube/objects/yaml_text.h"

namespace mortise::kube {
namespace {

constexpr const char* kSpec = "hivedscheduler.microsoft.com/pod-scheduling-spec";

/// Members are told apart by the GPUs that they ask for.
std::string role_of(std::int32_t leaf_cells) {
  return "leaf-cells-" + std::to_string(leaf_cells);
}

GangReading read_spec(const nlohmann::json& document) {
  std::optional<Error> mistake;
  const Field root(document, mistake);
  const Field group = root.member("affinityGroup");
  if (mistake) return *mistake;
  if (!group.present()) return no_gang();
  GangRef gang;
  gang.identity = group.member("name").text();
  gang.role = role_of(root.member("leafCellNumber").count(0, kMaxGangMembers).value_or(0));
  if (const auto priority = root.member("priority").whole(32)) gang.priority = static_cast<std::int32_t>(*priority);
  bool has_own = false;
  for (const Field& member : group.member("members").items()) {
    const auto pods = member.member("podNumber").count(1, kMaxGangMembers);
    const auto cells = member.member("leafCellNumber").count(0, kMaxGangMembers);
    gang.total = add_members(gang.total, pods.value_or(0));
    gang.roles.push_back({role_of(cells.value_or(0)), pods.value_or(0), {}});
    has_own = has_own || gang.roles.back().name == gang.role;
  }
  if (mistake) return *mistake;
  if (gang.identity.empty()) return Error{"affinityGroup.name is missing"};
  if (!has_own) return Error{"affinityGroup.members has none with the pod's leafCellNumber"};
  if (gang.total > kMaxGangMembers) {
    return Error{"affinityGroup has more than " + std::to_string(kMaxGangMembers) + " pods"};
  }
  gang.minimum = gang.total;
  return std::optional(std::move(gang));
}

}  // namespace

GangReading read_hived_gang(const Pod& pod, const GroupObjects&) {
  const std::string text = annotation(pod, kSpec);
  if (text.empty()) return no_gang();
  std::optional<GangRef> gang;
  bool first = true;
  const Status read = read_yaml_text(text, "annotation", [&](const nlohmann::json& document, int) -> Status {
    if (!std::exchange(first, false)) return Error{"it has several documents"};
    auto reading = read_spec(document);
    if (!reading) return reading.error();
    gang = *std::move(reading);
    return ok_status();
  });
  if (!read) return Error{"annotation " + std::string(kSpec) + ": " + read.message()};
  return gang;
}

}  // namespace mortise::kube
