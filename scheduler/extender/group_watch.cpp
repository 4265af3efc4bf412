#include "scheduler/extender/group_watch.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "scheduler/kube/objects/field.h"
#include "scheduler/kube/objects/json_text.h"

namespace mortise::extender {
namespace {

/// Empty: there is no such thing, or `error` says why nobody knows.
nlohmann::json ask(kube::ApiClient& client, const std::string& path, const kube::CallOptions& call,
                   std::string& error) {
  const kube::ApiResult result = client.get(path, call);
  if (result.response() != nullptr && result.response()->status == 404) return {};
  if (!result.ok()) {
    error = path + ": " + result.describe();
    return {};
  }
  Result<nlohmann::json> document = kube::parse_json_text(result.response()->body, path);
  if (!document.ok()) {
    error = document.message();
    return {};
  }
  return *std::move(document);
}

}  // namespace

/// The preferred one first.
std::vector<std::string> GroupDiscovery::versions(const std::string& group, const kube::CallOptions& call,
                                                  std::string& error) {
  const nlohmann::json document = ask(client_, "/apis/" + group, call, error);
  std::optional<Error> mistake;
  const kube::Field root(document, mistake);
  std::vector<std::string> found;
  if (!root.present()) return found;
  found.push_back(root.member("preferredVersion").member("version").text());
  for (const kube::Field& version : root.member("versions").items()) {
    const std::string name = version.member("version").text();
    if (name != found.front()) found.push_back(name);
  }
  if (mistake) error = group + ": " + mistake->message;
  return found;
}

std::set<std::string> GroupDiscovery::resources(const std::string& group, const std::string& version,
                                                const kube::CallOptions& call, std::string& error) {
  const nlohmann::json document = ask(client_, "/apis/" + group + "/" + version, call, error);
  std::optional<Error> mistake;
  const kube::Field root(document, mistake);
  std::set<std::string> names;
  if (!root.present()) return names;
  for (const kube::Field& resource : root.member("resources").items()) names.insert(resource.member("name").text());
  return names;
}

std::vector<ServedGroupKind> GroupDiscovery::look(const std::stop_token& stop, std::string& error) {
  std::set<std::string> groups;
  for (const kube::GroupKindInfo& info : kube::group_kinds()) groups.emplace(info.api_group);
  const kube::CallOptions call{.timeout = {}, .stop = stop};
  std::vector<ServedGroupKind> served;
  for (const std::string& group : groups) {
    for (const std::string& version : versions(group, call, error)) {
      const std::set<std::string> names = resources(group, version, call, error);
      for (const kube::GroupKindInfo& info : kube::group_kinds()) {
        const std::string resource(info.resource);
        if (info.api_group != group || !names.contains(resource)) continue;
        if (!found_.insert(group + "/" + resource).second) continue;
        served.push_back({info, group + "/" + version});
      }
    }
  }
  return served;
}

}  // namespace mortise::extender
