#include "sim/topo_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "scheduler/base/quote.h"
#include "scheduler/kube/objects/json_text.h"
#include "scheduler/kube/objects/node.h"
#include "scheduler/kube/objects/yaml_text.h"
#include "scheduler/topology/bandwidth.h"
#include "scheduler/topology/combine.h"
#include "scheduler/topology/machine_json.h"
#include "scheduler/topology/sources/catalogue.h"
#include "scheduler/topology/sources/nrt_json.h"
#include "scheduler/topology/sources/synthetic.h"
#include "scheduler/topology/sources/topo_matrix.h"
#include "sim/files.h"

namespace mortise::sim {
namespace {

using nlohmann::json;
using topology::Reading;

/// Beside an installed program, or in the source tree it was built from.
std::filesystem::path catalogue_folder(const std::string& option) {
  if (!option.empty()) return option;
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path installed = program.parent_path().parent_path() / "share" / "mortise" / "topologies";
  if (!error && std::filesystem::is_directory(installed, error)) return installed;
  return MORTISE_CATALOGUE_DIR;
}

Result<Reading> read_catalogue_machine(const TopoSource& source) {
  const auto catalogue = topology::Catalogue::load(catalogue_folder(source.catalogue));
  if (!catalogue) return catalogue.error();
  const auto machine = catalogue->find(source.machine);
  if (!machine) return machine.error();
  Reading reading;
  reading.machine = (*machine)->machine;
  return reading;
}

/// What a file of Kubernetes objects says about one node.
struct NodeObjects {
  std::optional<kube::Node> node;
  std::optional<Reading> report;  ///< NodeResourceTopology
};

class NodeFile {
 public:
  explicit NodeFile(const std::string& path) : path_(path) {}

  Status add(const json& document, const std::string& where) {
    const auto items = document.is_object() ? document.find("items") : document.end();
    if (document.is_object() && items != document.end() && items->is_array()) {
      for (const json& item : *items) {
        if (const Status status = add(item, where); !status) return status;
      }
      return ok_status();
    }
    const std::string kind = document.is_object() ? document.value("kind", json()).dump() : "";
    const std::string text = document.dump(-1, ' ', false, json::error_handler_t::replace);
    if (kind == "\"Node\"") {
      auto node = kube::parse_node(text);
      if (!node) return Error{where + ": " + node.message()};
      NodeObjects& objects = nodes_[node->name];
      objects.node = *std::move(node);
    } else if (kind == "\"NodeResourceTopology\"") {
      auto reading = topology::read_nrt_json(text, where);
      if (!reading) return reading.error();
      NodeObjects& objects = nodes_[reading->node];
      objects.report = *std::move(reading);
    } else {
      return Error{where + ": kind is " + quote(kind) + "; allowed: Node, NodeResourceTopology, a List of them"};
    }
    return ok_status();
  }

  Result<const NodeObjects*> find(const std::string& name) const {
    std::string known;
    for (const auto& [key, objects] : nodes_) {
      if (key == name || (name.empty() && nodes_.size() == 1)) return &objects;
      known += (known.empty() ? "" : ", ") + key;
    }
    if (nodes_.empty()) return Error{path_ + ": no node in the file"};
    if (name.empty())
      return Error{path_ + ": " + std::to_string(nodes_.size()) + " nodes; give one by --name: " + known};
    return Error{path_ + ": no node " + quote(name) + "; known: " + known};
  }

 private:
  std::string path_;
  std::map<std::string, NodeObjects> nodes_;
};

/// The sources of a live node in the order of their rank: annotation, NodeResourceTopology, labels.
Result<Reading> combine_node(const NodeObjects& objects, const TopoSource& source) {
  Reading reading;
  bool anything = false;
  const auto add = [&](const Reading& more, std::string_view name) {
    anything = true;
    topology::combine(reading, more, name);
  };
  if (objects.node) {
    reading.node = objects.node->name;
    const auto found = objects.node->annotations.find(std::string(topology::kTopologyAnnotation));
    if (found != objects.node->annotations.end()) {
      const auto annotation = topology::read_machine_json(found->second, topology::kTopologyAnnotation);
      if (annotation) {
        add(*annotation, "annotation");
      } else {
        reading.notes.push_back("annotation left out: " + annotation.message());
      }
    }
  }
  if (objects.report) add(*objects.report, "NodeResourceTopology");
  if (objects.node) {
    const auto catalogue = topology::Catalogue::load(catalogue_folder(source.catalogue));
    if (!catalogue) return catalogue.error();
    const auto labels = topology::read_node_labels(objects.node->labels, &*catalogue);
    if (!labels) return labels.error();
    if (*labels) add(**labels, "labels");
  }
  if (!anything) {
    return Error{
        fmt::format("{}: node {} says nothing of its topology; it may by the annotation {}, by labels of GPU "
                    "Feature Discovery, or by a NodeResourceTopology object beside it",
                    source.node, quote(reading.node), topology::kTopologyAnnotation)};
  }
  return reading;
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
