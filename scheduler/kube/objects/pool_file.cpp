#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <utility>

#include "scheduler/base/quote.h"
#include "scheduler/kube/objects/node_pools.h"
#include "scheduler/kube/objects/yaml_text.h"

namespace mortise::kube {
namespace {

constexpr std::string_view kRackLabel = "topology.kubernetes.io/rack";

Error at(const std::string& file, const YAML::Mark& mark, const std::string& what) {
  return Error{file + ":" + std::to_string(mark.line + 1) + ": " + what};
}

/// One value of a pool, to be read by the row of its key.
struct Value {
  const YAML::Node& node;
  const topology::Catalogue& machines;
};

Result<std::string> text_of(const YAML::Node& node) {
  if (!node.IsScalar() || node.Scalar().empty()) return Error{"is no text"};
  return node.Scalar();
}

Status set_text(const Value& value, std::string& text) {
  auto read = text_of(value.node);
  if (!read) return read.error();
  text = *std::move(read);
  return ok_status();
}

Status set_count(const Value& value, int& count) {
  const auto text = text_of(value.node);
  const std::string digits = text ? *text : "";
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (error != std::errc() || end != digits.data() + digits.size() || count < 1 || count > kMaxPoolNodes) {
    return Error{"is " + quote(digits) + "; allowed: 1 to " + std::to_string(kMaxPoolNodes)};
  }
  return ok_status();
}

Status set_machine(const Value& value, NodePool& pool) {
  const auto name = text_of(value.node);
  if (!name) return name.error();
  const auto machine = value.machines.find(*name);
  if (!machine) return machine.error();
  pool.machine = *machine;
  return ok_status();
}

/// Node names are built from it.
Status set_prefix(const Value& value, NodePool& pool) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789-.";
  constexpr std::size_t kLongest = 48;
  if (const Status read = set_text(value, pool.prefix); !read) return read;
  if (pool.prefix.size() > kLongest || pool.prefix.find_first_not_of(kAllowed) != std::string::npos) {
    return Error{"is " + quote(pool.prefix) + "; allowed: up to 48 small letters, digits, '-' and '.'"};
  }
  return ok_status();
}

Status set_labels(const Value& value, NodePool& pool) {
  if (!value.node.IsMap()) return Error{"is no map of labels"};
  for (const auto& entry : value.node) {
    if (!entry.first.IsScalar() || !entry.second.IsScalar()) return Error{"has a label that is no text"};
    if (!pool.labels.emplace(entry.first.Scalar(), entry.second.Scalar()).second) {
      return Error{"has label " + quote(entry.first.Scalar()) + " twice"};
    }
  }
  return ok_status();
}

Result<KubeletSettings> read_kubelet(const YAML::Node& node) {
  if (!node.IsMap()) {
    const auto text = text_of(node);
    if (!text) return text.error();
    return parse_kubelet_settings(*text);
  }
  KubeletSettings settings;
  std::set<std::string> seen;
  for (const auto& entry : node) {
    if (!entry.first.IsScalar() || !entry.second.IsScalar()) return Error{"has a key or value that is no text"};
    if (!seen.insert(entry.first.Scalar()).second) return Error{"has key " + quote(entry.first.Scalar()) + " twice"};
    const Status set = set_kubelet_key(settings, entry.first.Scalar(), entry.second.Scalar());
    if (!set) return set.error();
  }
  return settings;
}

/// The text of the node annotation, or a map with its keys.
Status set_kubelet(const Value& value, NodePool& pool) {
  auto settings = read_kubelet(value.node);
  if (!settings) return settings.error();
  if (settings->mode && pool.kubelet.mode) return Error{"mode stands outside of it, too"};
  if (!settings->mode) settings->mode = pool.kubelet.mode;
  pool.kubelet = *std::move(settings);
  return ok_status();
}

Status set_mode(const Value& value, NodePool& pool) {
  const auto text = text_of(value.node);
  if (!text) return text.error();
  const auto mode = parse_assignment_mode(*text);
  if (!mode) return mode.error();
  if (pool.kubelet.mode) return Error{"stands in kubelet, too"};
  pool.kubelet.mode = *mode;
  return ok_status();
}

struct Key {
  std::string_view name;
  Status (*set)(const Value& value, NodePool& pool);
};
constexpr std::array kKeys = {
    Key{"machine", set_machine},
    Key{"count", [](const Value& value, NodePool& pool) { return set_count(value, pool.count); }},
    Key{"prefix", set_prefix},
    Key{"model", [](const Value& value, NodePool& pool) { return set_text(value, pool.model); }},
    Key{"cpu", [](const Value& value, NodePool& pool) { return set_text(value, pool.cpu); }},
    Key{"memory", [](const Value& value, NodePool& pool) { return set_text(value, pool.memory); }},
    Key{"pods", [](const Value& value, NodePool& pool) { return set_text(value, pool.pods); }},
    Key{"kubelet", set_kubelet},
    Key{"mode", set_mode},
    Key{"labels", set_labels},
    Key{"rack_size", [](const Value& value, NodePool& pool) { return set_count(value, pool.rack_size); }},
    Key{"rack_label", [](const Value& value, NodePool& pool) { return set_text(value, pool.rack_label); }},
};

std::string known_keys() {
  std::string known;
  for (const Key& key : kKeys) known.append(known.empty() ? "" : ", ").append(key.name);
  return known;
}

Result<NodePool> read_pool(const YAML::Node& node, const std::string& file, const topology::Catalogue& machines) {
  if (!node.IsMap()) return at(file, node.Mark(), "no pool; allowed: a map with machine and count");
  NodePool pool;
  pool.where = file + ":" + std::to_string(node.Mark().line + 1) + ": ";
  std::set<std::string> seen;
  for (const auto& entry : node) {
    const std::string name = entry.first.IsScalar() ? entry.first.Scalar() : std::string();
    const auto* key = std::find_if(kKeys.begin(), kKeys.end(), [&](const Key& row) { return row.name == name; });
    if (key == kKeys.end()) {
      return at(file, entry.first.Mark(), "unknown key " + quote(name) + "; known: " + known_keys());
    }
    if (!seen.insert(name).second) return at(file, entry.first.Mark(), "key " + quote(name) + " twice");
    const Status set = key->set({entry.second, machines}, pool);
    if (!set) return at(file, entry.second.Mark(), name + ": " + set.message());
  }
  for (const char* name : {"machine", "count"}) {
    if (!seen.contains(name)) return Error{pool.where + "key " + name + " is missing"};
  }
  if (pool.prefix.empty()) pool.prefix = pool.machine->name;
  if (pool.rack_label.empty()) {
    pool.rack_label = kRackLabel;
  } else if (pool.rack_size == 0) {
    return Error{pool.where + "rack_label goes with rack_size"};
  }
  return pool;
}

Result<std::vector<NodePool>> read_pools(const YAML::Node& root, const std::string& file,
                                         const topology::Catalogue& machines) {
  if (!root.IsMap()) return at(file, root.Mark(), "no cluster; allowed: a map with the list pools");
  for (const auto& entry : root) {
    if (!entry.first.IsScalar() || entry.first.Scalar() != "pools") {
      return at(file, entry.first.Mark(), "unknown key; known: pools");
    }
  }
  const YAML::Node list = root["pools"];
  if (!list.IsSequence() || list.size() == 0) return at(file, list.Mark(), "pools is no list of pools");
  std::vector<NodePool> pools;
  for (const YAML::Node& item : list) {
    auto pool = read_pool(item, file, machines);
    if (!pool) return pool.error();
    pools.push_back(*std::move(pool));
  }
  return pools;
}

}  // namespace

bool looks_like_pool_file(std::string_view text) {
  constexpr std::string_view kStart = "pools:";
  for (std::size_t at = text.find(kStart); at != std::string_view::npos; at = text.find(kStart, at + 1)) {
    if (at == 0 || text[at - 1] == '\n') return true;
  }
  return false;
}

Result<std::vector<NodePool>> read_pool_file(const std::string& text, const std::string& file,
                                             topology::LazyCatalogue& catalogue) {
  const auto machines = catalogue.get();
  if (!machines) return machines.error();
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() != 1) {
      return Error{file + ": " + std::to_string(documents.size()) + " YAML documents; allowed: one"};
    }
    return read_pools(documents.front(), file, **machines);
  } catch (const YAML::Exception& error) {
    return at(file, error.mark, yaml_mistake(error));
  }
}

}  // namespace mortise::kube
