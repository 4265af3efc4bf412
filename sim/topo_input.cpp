#include "sim/topo_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "scheduler/base/quote.h"
#include "scheduler/kube/objects/decode.h"
#include "scheduler/kube/objects/json_text.h"
#include "scheduler/kube/objects/node_sources.h"
#include "scheduler/kube/objects/yaml_text.h"
#include "scheduler/topology/bandwidth.h"
#include "scheduler/topology/machine_json.h"
#include "scheduler/topology/sources/lazy_catalogue.h"
#include "scheduler/topology/sources/nrt_json.h"
#include "scheduler/topology/sources/synthetic.h"
#include "scheduler/topology/sources/topo_matrix.h"
#include "sim/files.h"

namespace mortise::sim {
namespace {

using nlohmann::json;
using topology::Reading;

Result<Reading> read_catalogue_machine(const TopoSource& source) {
  topology::LazyCatalogue lazy(source.catalogue);
  const auto catalogue = lazy.get();
  if (!catalogue) return catalogue.error();
  const auto machine = (*catalogue)->find(source.machine);
  if (!machine) return machine.error();
  Reading reading;
  reading.machine = (*machine)->machine;
  return reading;
}

/// What a file of Kubernetes objects says about one node.
struct NodeObjects {
  std::optional<kube::Node> node;
  std::optional<topology::NodeTopologyReport> report;
};

class NodeFile {
 public:
  explicit NodeFile(const std::string& path) : path_(path) {}

  /// Other objects of a snapshot are passed over. `default_kind` is that of items in a typed list, which say none.
  Status add(const json& document, const std::string& where, const std::string& default_kind = {}) {
    if (!document.is_object()) return ok_status();
    const auto said = document.find("kind");
    const std::string kind = said != document.end() && said->is_string() ? said->get<std::string>() : default_kind;
    const auto items = document.find("items");
    if (items != document.end() && items->is_array()) {
      for (const json& item : *items) {
        const Status status = add(item, where, kind.substr(0, kind.size() - (kind.ends_with("List") ? 4 : 0)));
        if (!status) return status;
      }
    } else if (kind == "Node") {
      auto node = kube::decode_node(document);
      if (!node) return Error{where + ": " + node.message()};
      NodeObjects& objects = nodes_[node->name];
      objects.node = *std::move(node);
    } else if (kind == "NodeResourceTopology") {
      auto report = topology::decode_node_topology(document, where + ": ");
      if (!report) return report.error();
      NodeObjects& objects = nodes_[report->reading.node];
      objects.report = *std::move(report);
    }
    return ok_status();
  }

  Result<const NodeObjects*> find(const std::string& name) const {
    std::string known;
    for (const auto& [key, objects] : nodes_) {
      if (key == name || (name.empty() && nodes_.size() == 1)) return &objects;
      known += (known.empty() ? "" : ", ") + key;
    }
    if (nodes_.empty()) {
      return Error{path_ + ": no node in the file; allowed: Node, NodeResourceTopology, a List of them"};
    }
    if (name.empty())
      return Error{path_ + ": " + std::to_string(nodes_.size()) + " nodes; give one by --name: " + known};
    return Error{path_ + ": no node " + quote(name) + "; known: " + known};
  }

 private:
  std::string path_;
  std::map<std::string, NodeObjects> nodes_;
};

Result<Reading> combine_node(const NodeObjects& objects, const TopoSource& source) {
  topology::LazyCatalogue catalogue(source.catalogue);
  auto found = kube::read_node_sources(objects.node ? &*objects.node : nullptr,
                                       objects.report ? &*objects.report : nullptr, catalogue);
  if (!found) return found.error();
  if (found->told) return std::move(found->reading);
  std::string left_out;
  for (const std::string& note : found->reading.notes) left_out += " (" + note + ")";
  return Error{
      fmt::format("{}: node {} says nothing of its topology{}; it may by the annotation {}, by labels of GPU "
                  "Feature Discovery, or by a NodeResourceTopology object beside it",
                  source.node, quote(found->reading.node), left_out, topology::kTopologyAnnotation)};
}

Result<Reading> read_node_file(const TopoSource& source) {
  const auto text = read_file(source.node);
  if (!text) return text.error();
  // Only Kubernetes objects may be YAML, so every other form is asked first.
  for (const topology::Source& row : topology::source_table()) {
    if (row.name != "nrt" && row.recognises(*text)) {
      const auto document = kube::parse_json_text(*text, source.node);
      if (document && document->is_object() && document->contains("kind")) break;
      return row.read(*text, source.node);
    }
  }
  NodeFile file(source.node);
  Status status = ok_status();
  const std::size_t first = text->find_first_not_of(" \t\r\n");
  if (first != std::string::npos && ((*text)[first] == '{' || (*text)[first] == '[')) {
    const auto document = kube::parse_json_text(*text, source.node);
    if (!document) return document.error();
    status = file.add(*document, source.node);
  } else {
    status = kube::read_yaml_text(*text, source.node, [&](const json& document, int line) {
      if (document.is_null()) return ok_status();
      return file.add(document, fmt::format("{}:{}", source.node, line));
    });
  }
  if (!status) return status.error();
  const auto objects = file.find(source.name);
  if (!objects) return objects.error();
  return combine_node(**objects, source);
}

Result<Reading> read_source(const TopoSource& source) {
  const std::string* given[] = {&source.matrix, &source.machine, &source.node, &source.synthetic};
  const auto count = std::count_if(std::begin(given), std::end(given), [](const auto* text) { return !text->empty(); });
  if (count != 1) {
    return Error{fmt::format("{} machines given; allowed: one of --matrix, --machine, --node, --synthetic", count)};
  }
  if (!source.name.empty() && source.node.empty()) return Error{"--name goes with --node"};
  if (!source.machine.empty()) return read_catalogue_machine(source);
  if (!source.synthetic.empty()) return topology::read_synthetic(source.synthetic, "--synthetic");
  if (!source.node.empty()) return read_node_file(source);
  const auto text = read_file(source.matrix);
  if (!text) return text.error();
  return topology::read_topo_matrix(*text, source.matrix);
}

}  // namespace

Result<Reading> load_topology(const TopoSource& source) {
  if (!source.gpu.empty() && topology::find_gpu_model(source.gpu) == nullptr) {
    return Error{"--gpu: " + topology::unknown_model_message(source.gpu)};
  }
  auto reading = read_source(source);
  if (!reading) return reading;
  for (topology::Gpu& gpu : reading->machine.gpus) {
    if (gpu.model.empty()) {
      gpu.model = source.gpu;
    } else if (!source.gpu.empty() && topology::find_gpu_model(gpu.model) != topology::find_gpu_model(source.gpu)) {
      reading->notes.push_back(
          fmt::format("GPU {} is a {} by its source; --gpu is not used for it", gpu.index, gpu.model));
    }
  }
  return reading;
}

}  // namespace mortise::sim
