#include "sim/decision_log.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "scheduler/base/quote.h"
#include "scheduler/kube/objects/assigned_devices.h"
#include "scheduler/kube/objects/decode.h"
#include "scheduler/kube/objects/field.h"
#include "scheduler/kube/objects/json_text.h"
#include "sim/files.h"

namespace mortise::sim {
namespace {

using nlohmann::json;

constexpr const char* kForms = "allowed: one of node, node_gone, decided, bound, ended";

Result<std::string> text_of(const json& value, const char* key) {
  if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
    return Error{fmt::format("{} is not a name", key)};
  }
  return value.get<std::string>();
}

Result<placement::PodRequest> request_of(const json& value) {
  const auto object = value.find("pod");
  if (object == value.end()) return Error{"no pod"};
  const Result<kube::Pod> pod = kube::decode_pod(*object);
  if (!pod) return pod.error();
  if (pod->uid.empty()) return Error{"a pod without UID"};
  return kube::pod_request(*pod);
}

Result<LogEvent> read_decided(const json& value) {
  std::optional<Error> mistake;
  const kube::Field root(value, mistake);
  PodDecided event;
  event.node = root.member("node").text();
  for (const kube::Field& name : root.member("candidates").items()) event.candidates.push_back(name.text());
  if (mistake) return *mistake;
  if (event.node.empty()) return Error{"a decision without node"};
  Result<placement::PodRequest> pod = request_of(value);
  if (!pod) return pod.error();
  event.pod = *std::move(pod);
  if (const auto devices = value.find("devices"); devices != value.end()) {
    const auto assigned = kube::parse_assigned_devices(devices->dump());
    if (!assigned) return Error{"devices: " + assigned.message()};
    if (assigned->by_uuid) return Error{"devices by UUID; allowed: indices"};
    event.devices = assigned->devices;
  }
  return LogEvent{std::move(event)};
}

Result<LogEvent> read_bound(const json& value) {
  std::optional<Error> mistake;
  PodBound event;
  event.node = kube::Field(value, mistake).member("node").text();
  if (mistake) return *mistake;
  if (event.node.empty()) return Error{"a bound pod without node"};
  Result<placement::PodRequest> pod = request_of(value);
  if (!pod) return pod.error();
  event.pod = *std::move(pod);
  return LogEvent{std::move(event)};
}

Result<LogEvent> read_event(const json& line) {
  if (!line.is_object() || line.size() != 1) return Error{fmt::format("not an object with one key; {}", kForms)};
  const std::string& kind = line.begin().key();
  const json& value = line.begin().value();
  if (kind == "node") {
    Result<kube::Node> node = kube::decode_node(value);
    if (!node) return node.error();
    return LogEvent{NodeSeen{*std::move(node)}};
  }
  if (kind == "node_gone" || kind == "ended") {
    Result<std::string> name = text_of(value, kind.c_str());
    if (!name) return name.error();
    if (kind == "ended") return LogEvent{PodEnded{*std::move(name)}};
    return LogEvent{NodeGone{*std::move(name)}};
  }
  if (kind != "decided" && kind != "bound") return Error{fmt::format("unknown {}; {}", quote(kind), kForms)};
  if (!value.is_object()) return Error{kind + " is not an object"};
  return kind == "decided" ? read_decided(value) : read_bound(value);
}

}  // namespace

Status read_decision_log(const std::string& path, const std::function<Status(LogEvent)>& use) {
  if (const Status status = check_input(path); !status) return status;
  std::ifstream file(path);
  if (!file) return Error{path + ": cannot be read"};
  std::string line;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto at = [&](const std::string& what) { return Error{fmt::format("{}:{}: {}", path, number, what)}; };
    const Result<json> document = kube::parse_json_text(line, "");
    if (!document) return at("not JSON");
    Result<LogEvent> event = read_event(*document);
    if (!event) return at(event.message());
    if (const Status used = use(*std::move(event)); !used) return at(used.message());
  }
  if (file.bad()) return Error{path + ": cannot be read to its end"};
  return ok_status();
}

}  // namespace mortise::sim
