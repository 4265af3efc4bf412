#pragma once

#include <map>
#include <string>
#include <vector>

#include "scheduler/kube/objects/gang.h"

namespace mortise::test {

inline std::string text_of(const kube::TopologyAsk& ask) {
  return std::string(ask.required ? "required " : "preferred ") + (ask.level.empty() ? "nearest" : ask.level) +
         (ask.exclusive ? " exclusive" : "") + (ask.unit.empty() ? "" : " per " + ask.unit);
}

/// "KEY MINIMUM of TOTAL [ROLE MINIMUM, ...] ASK; ASK": a gang as one line.
inline std::string text_of(const kube::GangRef& gang) {
  std::string text = gang.key();
  if (!gang.waits_for.empty()) return text + " " + gang.waits_for;
  text += " " + std::to_string(gang.minimum) + " of " + (gang.total == 0 ? "any" : std::to_string(gang.total));
  std::string roles;
  for (const kube::GangRole& role : gang.roles) {
    roles += (roles.empty() ? "" : ", ") + role.name + " " + std::to_string(role.minimum);
  }
  if (!roles.empty()) text += " [" + roles + "]";
  if (gang.roles_needed > 0) text += " any " + std::to_string(gang.roles_needed);
  for (std::size_t i = 0; i < gang.topology.size(); ++i) text += (i == 0 ? " " : "; ") + text_of(gang.topology[i]);
  return text;
}

/// What is recognised of these pods (as JSON): a line per gang and role with its number of pods, sorted by their text;
/// `single` for pods of no gang. Errors are lines, too.
inline std::vector<std::string> recognised(const std::vector<std::string>& pods,
                                           const std::vector<std::string>& group_objects) {
  kube::GroupObjects objects;
  std::map<std::string, int> lines;
  for (const auto& object : group_objects) {
    if (auto decoded = kube::parse_group_object(object); decoded.ok()) {
      objects.put(*std::move(decoded));
    } else {
      ++lines["object: " + decoded.message()];
    }
  }
  for (const auto& document : pods) {
    const auto pod = kube::parse_pod(document);
    if (!pod) {
      ++lines["pod: " + pod.message()];
      continue;
    }
    const auto gang = kube::recognise_gang(*pod, objects);
    if (!gang) {
      ++lines["error: " + gang.message()];
    } else if (!gang->has_value()) {
      ++lines["single"];
    } else {
      ++lines[text_of(**gang) + ((*gang)->role.empty() ? "" : " | " + (*gang)->role)];
    }
  }
  std::vector<std::string> result;
  for (const auto& [line, count] : lines) result.push_back(std::to_string(count) + " x " + line);
  return result;
}

}  // namespace mortise::test
