#include "scheduler/kube/client/lease.h"

#include <array>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>

#include "scheduler/kube/client/json_body.h"
#include "scheduler/kube/client/resource_path.h"
#include "scheduler/kube/objects/field.h"
#include "scheduler/kube/objects/json_text.h"

namespace mortise::kube {
namespace {

using nlohmann::json;

constexpr const char* kPrefix = "/apis/coordination.k8s.io/v1";

Result<Lease> decode(std::string_view body) {
  const Result<json> document = parse_json_text(body, {});
  if (!document) return document.error();
  std::optional<Error> mistake;
  const Field root(*document, mistake);
  const Field metadata = root.member("metadata");
  const Field spec = root.member("spec");
  Lease lease;
  lease.ns = metadata.member("namespace").text();
  lease.name = metadata.member("name").text();
  lease.uid = metadata.member("uid").text();
  lease.resource_version = metadata.member("resourceVersion").text();
  lease.annotations = metadata.member("annotations").texts();
  lease.holder = spec.member("holderIdentity").text();
  lease.duration_seconds = spec.member("leaseDurationSeconds").whole().value_or(0);
  lease.acquire_time = spec.member("acquireTime").text();
  lease.renew_time = spec.member("renewTime").text();
  lease.transitions = spec.member("leaseTransitions").whole().value_or(0);
  lease.stored = body;
  if (mistake) return *mistake;
  return lease;
}

void set_text(json& object, const char* key, const std::string& value) {
  if (value.empty()) {
    object.erase(key);
  } else {
    object[key] = value;
  }
}

json encode(const Lease& lease) {
  json document = stored_object(lease.stored, "coordination.k8s.io/v1", "Lease");
  json& metadata = document["metadata"];
  metadata["namespace"] = lease.ns;
  metadata["name"] = lease.name;
  set_text(metadata, "uid", lease.uid);
  set_text(metadata, "resourceVersion", lease.resource_version);
  metadata.erase("annotations");
  if (!lease.annotations.empty()) metadata["annotations"] = lease.annotations;
  json& spec = document["spec"];
  if (!spec.is_object()) spec = json::object();
  set_text(spec, "holderIdentity", lease.holder);
  set_text(spec, "acquireTime", lease.acquire_time);
  set_text(spec, "renewTime", lease.renew_time);
  // The API server takes no duration below one second.
  if (lease.duration_seconds > 0) spec["leaseDurationSeconds"] = lease.duration_seconds;
  spec["leaseTransitions"] = lease.transitions;
  return document;
}

}  // namespace

std::string micro_time(std::chrono::system_clock::time_point time) {
  const auto since = std::chrono::floor<std::chrono::microseconds>(time.time_since_epoch());
  const auto whole = std::chrono::floor<std::chrono::seconds>(since);
  const std::time_t seconds = whole.count();
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 32> day{};
  std::strftime(day.data(), day.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  std::array<char, 16> fraction{};
  std::snprintf(fraction.data(), fraction.size(), ".%06dZ", static_cast<int>((since - whole).count()));
  return std::string(day.data()) + fraction.data();
}

Answer<Lease> read_lease(ApiClient& client, const std::string& ns, const std::string& name, const CallOptions& call) {
  return answer_of<Lease>(client.get(resource_path(kPrefix, ns, "leases", name), call), decode);
}

Answer<Lease> create_lease(ApiClient& client, const Lease& lease, const CallOptions& call) {
  return answer_of<Lease>(client.post(resource_path(kPrefix, lease.ns, "leases"), to_text(encode(lease)), call),
                          decode);
}

Answer<Lease> update_lease(ApiClient& client, const Lease& lease, const CallOptions& call) {
  if (lease.resource_version.empty())
    return {Outcome::kRefused, "an update needs the resource version that it is based on"};
  return answer_of<Lease>(
      client.put(resource_path(kPrefix, lease.ns, "leases", lease.name), to_text(encode(lease)), call), decode);
}

}  // namespace mortise::kube
