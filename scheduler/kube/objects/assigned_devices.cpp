#include "scheduler/kube/objects/assigned_devices.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "scheduler/base/quote.h"
#include "scheduler/kube/objects/json_text.h"

namespace mortise::kube {
namespace {

bool is_uuid(const std::string& text) {
  return text.starts_with("GPU-") || text.starts_with("MIG-");
}

std::optional<int> device_index(const std::string& text) {
  int index = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (index < 0 || index >= placement::kMaxDevices) return std::nullopt;
  return index;
}

Status add_container(const nlohmann::json& devices, AssignedDevices& assigned) {
  placement::DeviceSet own;
  if (!devices.is_array()) return Error{"the devices of a container must be an array"};
  for (const nlohmann::json& device : devices) {
    if (!device.is_string()) return Error{"a device must be a string"};
    const auto& text = device.get_ref<const std::string&>();
    if (is_uuid(text)) {
      assigned.by_uuid = true;
      continue;
    }
    const std::optional<int> index = device_index(text);
    if (!index) return Error{quote(text) + " is neither a device index (0 to 127) nor a UUID (GPU-..., MIG-...)"};
    if (own.contains(*index)) return Error{"device " + quote(text) + " is named twice"};
    own.insert(*index);
    assigned.devices.insert(*index);
  }
  return ok_status();
}

}  // namespace

std::string assigned_devices_text(const std::vector<placement::ContainerDevices>& containers) {
  nlohmann::json document = nlohmann::json::object();
  for (const placement::ContainerDevices& container : containers) {
    nlohmann::json devices = nlohmann::json::array();
    container.devices.for_each([&](int device) { devices.push_back(std::to_string(device)); });
    document[container.container] = std::move(devices);
  }
  return document.dump();
}

Result<AssignedDevices> parse_assigned_devices(std::string_view annotation) {
  const Result<nlohmann::json> document = parse_json_text(annotation, {});
  if (!document || !document->is_object()) return Error{"not a JSON object of containers and their devices"};
  AssignedDevices assigned;
  for (const nlohmann::json& devices : *document) {
    if (const Status added = add_container(devices, assigned); !added) return added.error();
  }
  return assigned;
}

}  // namespace mortise::kube
