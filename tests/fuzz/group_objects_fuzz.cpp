#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "scheduler/kube/objects/decode.h"
#include "scheduler/kube/objects/gang.h"

namespace {

using namespace mortise;

// Messages become part of one line, and go through a format string of kube-scheduler.
void check_message(const std::string& message) {
  if (message.empty() || message.find_first_of("\n%") != std::string::npos) std::abort();
}

void check_gang(const kube::GangRef& gang) {
  if (gang.identity.empty()) std::abort();
  if (!gang.waits_for.empty()) return check_message(gang.waits_for);
  if (gang.minimum < 1 || gang.minimum > kube::kMaxGangMembers) std::abort();
  if (gang.total != 0 && (gang.total < gang.minimum || gang.total > kube::kMaxGangMembers)) std::abort();
  for (const kube::GangRole& role : gang.roles) {
    if (role.minimum < 0) std::abort();
  }
  if (gang.roles_needed < 0 || static_cast<std::size_t>(gang.roles_needed) > gang.roles.size()) std::abort();
}

}  // namespace

// A JSON list of group objects and pods in any order, or one of them: all are read or refused, and no gang is out of
// its bounds.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto document = nlohmann::json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) return 0;
  if (!document.is_array()) document = nlohmann::json::array({document});
  kube::GroupObjects objects;
  for (const auto& item : document) {
    auto object = kube::decode_group_object(item);
    if (object.ok()) {
      if (!object->invalid.empty()) check_message(object->invalid);
      objects.put(*std::move(object));
    } else {
      check_message(object.message());
    }
  }
  for (const auto& item : document) {
    const auto pod = kube::decode_pod(item);
    if (!pod.ok()) continue;
    const auto gang = kube::recognise_gang(*pod, objects);
    if (!gang.ok()) {
      check_message(gang.message());
    } else if (gang->has_value()) {
      check_gang(**gang);
      const std::int32_t priorities[] = {pod->priority, 0};
      const auto priority = kube::gang_priority(**gang, objects, priorities);
      if (!priority.ok()) check_message(priority.message());
    }
  }
  return 0;
}
