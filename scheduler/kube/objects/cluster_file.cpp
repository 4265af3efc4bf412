#include "scheduler/kube/objects/cluster_file.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>
#include <utility>

#include "scheduler/base/quote.h"
#include "scheduler/kube/objects/json_text.h"
#include "scheduler/kube/objects/node_pools.h"
#include "scheduler/kube/objects/node_sources.h"
#include "scheduler/kube/objects/node_topology.h"
#include "scheduler/kube/objects/object_list.h"
#include "scheduler/kube/objects/text_file.h"
#include "scheduler/kube/objects/yaml_text.h"
#include "scheduler/topology/sources/lazy_catalogue.h"
#include "traces/node_csv.h"

namespace mortise::kube {
namespace {

// The pod limit of the published study's nodes; the CSV has no such column.
constexpr std::int32_t kCsvPods = 1001;

constexpr std::string_view kAllowed =
    "allowed: an openb node CSV, Kubernetes nodes as JSON or YAML, a file of node pools, or MACHINE:COUNT,... of the "
    "machine catalogue";

enum class Form { kEmpty, kCsv, kJson, kYaml, kPools, kPoolList };

Form form_of(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) return Form::kEmpty;
  if (text[start] == '{' || text[start] == '[') return Form::kJson;
  // A CSV starts with its column names; a line of YAML that says anything has a colon, or is a comment or a marker.
  const std::string_view line = text.substr(start, text.find_first_of("\r\n", start) - start);
  if (line[0] == '#' || line.find(':') != std::string_view::npos) {
    return looks_like_pool_file(text) ? Form::kPools : Form::kYaml;
  }
  return line.find(',') != std::string_view::npos ? Form::kCsv : Form::kYaml;
}

/// The machine that alone has this GPU model and so many GPUs; null when none does, or several do.
const topology::CatalogueMachine* only_machine(const topology::Catalogue& catalogue, const std::string& model,
                                               std::size_t gpus) {
  const topology::CatalogueMachine* only = nullptr;
  for (const topology::CatalogueMachine& machine : catalogue.machines()) {
    const bool named = machine.trace_model == model ||
                       std::find(machine.products.begin(), machine.products.end(), model) != machine.products.end();
    if (!named || machine.machine.gpus.size() != gpus) continue;
    if (only != nullptr) return nullptr;
    only = &machine;
  }
  return only;
}

Status add_csv_topology(ClusterFile& file, topology::LazyCatalogue& lazy) {
  const auto catalogue = lazy.get();
  if (!catalogue) return catalogue.error();
  Notes notes;
  NodeTopologies topologies(lazy, notes);
  for (placement::NodeSpec& node : file.nodes) {
    if (node.gpus == 0) continue;
    const auto* machine = only_machine(**catalogue, node.model, static_cast<std::size_t>(node.gpus));
    if (machine == nullptr) {
      notes.add_one_of("nodes whose GPU model and number name no machine of the catalogue, or several, count GPUs only",
                       node.name);
      continue;
    }
    topology::Machine own = machine->machine;
    forget_cpus(own);  // they are those of another one
    forget_memory(own);
    auto made = topologies.make(std::move(own), {}, node, nullptr);
    if (!made) return Error{"machine " + machine->name + ": " + made.message()};
    node.topology = *std::move(made);
  }
  file.notes = notes.lines();
  return ok_status();
}

Result<ClusterFile> read_csv(std::string text, const std::string& path) {
  std::istringstream in(std::move(text));
  Result<std::vector<traces::NodeRecord>> records = traces::read_node_csv(in, path);
  if (!records) return records.error();
  ClusterFile file;
  for (traces::NodeRecord& record : *records) {
    placement::NodeSpec node;
    node.name = std::move(record.name);
    node.cpu = record.cpu;
    node.memory = record.memory;
    node.pods = kCsvPods;
    node.gpus = record.gpus;
    node.model = std::move(record.model);
    file.nodes.push_back(std::move(node));
  }
  file.labels.resize(file.nodes.size());
  return file;
}

Result<ClusterFile> read_json(std::string text, const std::string& path, topology::LazyCatalogue& catalogue) {
  ObjectList list(catalogue);
  {
    const Result<nlohmann::json> document = parse_json_text(text, path);
    if (!document) return document.error();
    std::string().swap(text);  // a snapshot of a large cluster is large
    if (const Status added = list.add_document(*document, path + ": "); !added) return added.error();
  }
  return list.finish(path);
}

Result<ClusterFile> read_yaml(const std::string& text, const std::string& path, topology::LazyCatalogue& catalogue) {
  ObjectList list(catalogue);
  const Status read = read_yaml_text(text, path, [&](const nlohmann::json& document, int line) {
    return list.add_document(document, path + ":" + std::to_string(line) + ": ");
  });
  if (!read) return read.error();
  return list.finish(path);
}

Result<ClusterFile> read_form(Form form, std::string text, const std::string& cluster, const ClusterOptions& options,
                              topology::LazyCatalogue& catalogue) {
  switch (form) {
    case Form::kCsv: {
      auto file = read_csv(std::move(text), cluster);
      if (file && options.csv_topology) {
        if (const Status added = add_csv_topology(*file, catalogue); !added) return added.error();
      }
      return file;
    }
    case Form::kJson:
      return read_json(std::move(text), cluster, catalogue);
    case Form::kYaml:
      return read_yaml(text, cluster, catalogue);
    case Form::kPools:
    case Form::kPoolList: {
      const auto pools =
          form == Form::kPools ? read_pool_file(text, cluster, catalogue) : read_pool_list(cluster, catalogue);
      if (!pools) return pools.error();
      return expand_pools(*pools, options, catalogue);
    }
    case Form::kEmpty:
      break;
  }
  return Error{cluster + ": the file is empty; " + std::string(kAllowed)};
}

}  // namespace

void note_unused_levels(std::span<const placement::TopologyLevel> levels, ClusterFile& file) {
  for (const placement::TopologyLevel& level : levels) {
    const auto has_key = [&](const Labels& labels) { return labels.contains(level.key); };
    if (level.key == placement::kHostnameLabel || std::any_of(file.labels.begin(), file.labels.end(), has_key))
      continue;
    file.notes.push_back("no node has the label " + quote(level.key) + " of topology level " + quote(level.name) +
                         ", so each is a domain of its own there");
  }
}

Result<ClusterFile> load_cluster_file(const std::string& cluster, const ClusterOptions& options) {
  std::error_code ignored;
  const bool is_file = std::filesystem::exists(cluster, ignored);
  Form form = Form::kPoolList;
  std::string text;
  if (is_file || !looks_like_pool_list(cluster)) {
    Result<std::string> read = read_text_file(cluster);
    if (!read) return Error{read.message() + (is_file ? "" : "; " + std::string(kAllowed))};
    text = *std::move(read);
    form = form_of(text);
  }
  if (options.csv_topology && form != Form::kCsv) {
    return Error{cluster + ": its nodes tell their topology themselves; allowed with topology from the catalogue: an " +
                 "openb node CSV"};
  }
  topology::LazyCatalogue catalogue(options.catalogue);
  auto file = read_form(form, std::move(text), cluster, options, catalogue);
  if (file && catalogue.loaded() != nullptr) file->catalogue_digest = catalogue.loaded()->digest();
  return file;
}

}  // namespace mortise::kube
