#include "scheduler/kube/objects/cluster_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "scheduler/kube/objects/json_text.h"
#include "scheduler/kube/objects/object_list.h"
#include "scheduler/kube/objects/text_file.h"
#include "scheduler/kube/objects/yaml_text.h"
#include "scheduler/topology/sources/lazy_catalogue.h"
#include "traces/node_csv.h"

namespace mortise::kube {
namespace {

// The pod limit of the published study's nodes; the CSV has no such column.
constexpr std::int32_t kCsvPods = 1001;

enum class Form { kEmpty, kCsv, kJson, kYaml };

Form form_of(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) return Form::kEmpty;
  if (text[start] == '{' || text[start] == '[') return Form::kJson;
  // A CSV starts with its column names; a line of YAML that says anything has a colon, or is a comment or a marker.
  const std::string_view line = text.substr(start, text.find_first_of("\r\n", start) - start);
  if (line[0] == '#' || line.find(':') != std::string_view::npos) return Form::kYaml;
  return line.find(',') != std::string_view::npos ? Form::kCsv : Form::kYaml;
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

Result<ClusterFile> read_cluster(const std::string& path, topology::LazyCatalogue& catalogue) {
  Result<std::string> text = read_text_file(path);
  if (!text) return text.error();
  switch (form_of(*text)) {
    case Form::kCsv:
      return read_csv(*std::move(text), path);
    case Form::kJson:
      return read_json(*std::move(text), path, catalogue);
    case Form::kYaml:
      return read_yaml(*text, path, catalogue);
    case Form::kEmpty:
      break;
  }
  return Error{path + ": the file is empty; allowed: an openb node CSV, or Kubernetes nodes as JSON or YAML"};
}

}  // namespace

Result<ClusterFile> load_cluster_file(const std::string& path, const ClusterOptions& options) {
  topology::LazyCatalogue catalogue(options.catalogue);
  auto file = read_cluster(path, catalogue);
  if (file && catalogue.loaded() != nullptr) file->catalogue_digest = catalogue.loaded()->digest();
  return file;
}

}  // namespace mortise::kube
