#include "scheduler/topology/sources/catalogue.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

#include "scheduler/base/quote.h"
#include "scheduler/base/rng.h"
#include "scheduler/topology/graph.h"
#include "scheduler/topology/sources/synthetic.h"

namespace mortise::topology {
namespace {

constexpr std::array<std::string_view, 6> kKeys = {"name",     "description", "topology",
                                                   "products", "models",      "trace_model"};

Error at(const std::string& file, const YAML::Mark& mark, const std::string& what) {
  return Error{file + ":" + std::to_string(mark.line + 1) + ": " + what};
}

Result<std::string> text_of(const YAML::Node& node, const std::string& file, const std::string& key) {
  if (!node.IsScalar() || node.Scalar().empty()) return at(file, node.Mark(), key + " is no text");
  return node.Scalar();
}

Result<std::vector<std::string>> texts_of(const YAML::Node& node, const std::string& file, const std::string& key) {
  if (!node.IsSequence()) return at(file, node.Mark(), key + " is no list");
  std::vector<std::string> texts;
  for (const YAML::Node& item : node) {
    auto text = text_of(item, file, key);
    if (!text) return text.error();
    texts.push_back(*std::move(text));
  }
  return texts;
}

Result<CatalogueMachine> read_machine(const YAML::Node& root, const std::string& file) {
  if (!root.IsMap()) return at(file, root.Mark(), "no machine; allowed: a map with name, description, topology");
  CatalogueMachine machine;
  std::set<std::string> seen;
  for (const auto& entry : root) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : std::string();
    if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) {
      return at(file, entry.first.Mark(),
                "unknown key " + quote(key) + "; known: name, description, topology, products, models, trace_model");
    }
    if (!seen.insert(key).second) return at(file, entry.first.Mark(), "key " + quote(key) + " twice");
    if (key == "products" || key == "models") {
      auto list = texts_of(entry.second, file, key);
      if (!list) return list.error();
      (key == "products" ? machine.products : machine.models) = *std::move(list);
      continue;
    }
    auto text = text_of(entry.second, file, key);
    if (!text) return text.error();
    (key == "name"          ? machine.name
     : key == "description" ? machine.description
     : key == "topology"    ? machine.topology
                            : machine.trace_model) = *std::move(text);
  }
  for (const std::string_view key : {"name", "description", "topology"}) {
    if (!seen.contains(std::string(key))) return at(file, root.Mark(), "key " + std::string(key) + " is missing");
  }
  auto reading = read_synthetic(machine.topology, file + ": topology");
  if (!reading) return reading.error();
  machine.machine = std::move(reading->machine);
  const auto graph = NodeGraph::build(machine.machine);
  if (!graph) return at(file, root["topology"].Mark(), graph.message());
  return machine;
}

/// Folds the text into `digest`.
Result<CatalogueMachine> read_file(const std::filesystem::path& path, std::uint64_t& digest) {
  const std::string file = path.string();
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return Error{file + ": cannot be read"};
  digest = mix64(digest ^ hash_text(text.view()));
  try {
    auto machine = read_machine(YAML::Load(text.str()), file);
    if (machine && path.stem().string() != machine->name) {
      return Error{file + ": the machine is named " + quote(machine->name) + "; allowed: the name of the file"};
    }
    return machine;
  } catch (const YAML::Exception& error) {
    return at(file, error.mark, "not YAML: " + error.msg);
  }
}

std::string label(const std::map<std::string, std::string>& labels, const char* key) {
  const auto found = labels.find(key);
  return found == labels.end() ? std::string() : found->second;
}

}  // namespace

Result<Catalogue> Catalogue::load(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (auto entry = std::filesystem::directory_iterator(folder, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (entry->path().extension() == ".yaml") files.push_back(entry->path());
  }
  if (error) return Error{folder.string() + ": " + error.message() + "; allowed: a folder of machine files"};
  // The order of a folder is not the same everywhere.
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.stem() < b.stem(); });
  Catalogue catalogue;
  for (const std::filesystem::path& path : files) {
    auto machine = read_file(path, catalogue.digest_);
    if (!machine) return machine.error();
    catalogue.machines_.push_back(*std::move(machine));
  }
  if (const Status status = catalogue.check_labels(); !status) return Error{folder.string() + ": " + status.message()};
  return catalogue;
}

Status Catalogue::check_labels() const {
  std::map<std::string, std::string> owner;
  for (const CatalogueMachine& machine : machines_) {
    std::vector<std::string> keys;
    for (const std::string& product : machine.products) {
      keys.push_back(std::to_string(machine.machine.gpus.size()) + " x " + product);
    }
    for (const std::string& model : machine.models) keys.push_back(model);
    for (const std::string& key : keys) {
      const auto [found, fresh] = owner.emplace(key, machine.name);
      if (!fresh) return Error{quote(key) + " is claimed by " + found->second + " and " + machine.name};
    }
  }
  return ok_status();
}

Result<const CatalogueMachine*> Catalogue::find(std::string_view name) const {
  std::string known;
  for (const CatalogueMachine& machine : machines_) {
    if (machine.name == name) return &machine;
    known.append(known.empty() ? "" : ", ").append(machine.name);
  }
  return Error{"unknown machine " + quote(name) + "; known: " + known};
}

const CatalogueMachine* Catalogue::match(std::string_view machine, std::string_view product, int gpus) const {
  const auto with_gpus = [&](const CatalogueMachine& row) { return static_cast<int>(row.machine.gpus.size()) == gpus; };
  for (const CatalogueMachine& row : machines_) {
    const bool named = std::any_of(row.models.begin(), row.models.end(),
                                   [&](const std::string& model) { return machine.starts_with(model); });
    if (named && with_gpus(row)) return &row;
  }
  for (const CatalogueMachine& row : machines_) {
    const bool named = std::find(row.products.begin(), row.products.end(), product) != row.products.end();
    if (named && with_gpus(row)) return &row;
  }
  return nullptr;
}

std::string_view whole_product(std::string_view product) {
  if (product.find("-MIG-") != std::string_view::npos) return {};
  constexpr std::string_view kShared = "-SHARED";
  return product.substr(0, product.size() - (product.ends_with(kShared) ? kShared.size() : 0));
}

Result<std::optional<Reading>> read_node_labels(const std::map<std::string, std::string>& labels,
                                                const Catalogue* catalogue) {
  const std::string product = label(labels, "nvidia.com/gpu.product");
  const std::string count_text = label(labels, "nvidia.com/gpu.count");
  if (product.empty() || count_text.empty()) return std::optional<Reading>();
  Reading reading;
  const std::string_view model = whole_product(product);
  if (model.empty()) {
    reading.notes.push_back("labels: " + quote(product) + " counts MIG devices; GPUs are not known from it");
    return std::optional(std::move(reading));
  }
  const std::size_t digits = count_text.find_first_not_of("0123456789");
  if (digits != std::string::npos || count_text.size() > 2 || std::stoi(count_text) > kMaxGpus) {
    return Error{"label nvidia.com/gpu.count is " + quote(count_text) + "; allowed: 0.." + std::to_string(kMaxGpus)};
  }
  const int gpus = std::stoi(count_text);
  const CatalogueMachine* known =
      catalogue == nullptr ? nullptr : catalogue->match(label(labels, "nvidia.com/gpu.machine"), model, gpus);
  if (known != nullptr) {
    reading.machine = known->machine;
    reading.notes.push_back("labels: taken for a " + known->name + " of the machine catalogue");
  }
  reading.machine.gpus.resize(static_cast<std::size_t>(gpus));
  for (int i = 0; i < gpus; ++i) {
    reading.machine.gpus[static_cast<std::size_t>(i)].index = i;
    reading.machine.gpus[static_cast<std::size_t>(i)].model = std::string(model);
  }
  return std::optional(std::move(reading));
}

}  // namespace mortise::topology
