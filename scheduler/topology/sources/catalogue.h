#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/topology/sources/source.h"

namespace mortise::topology {

/// A machine of the catalogue: one file NAME.yaml.
struct CatalogueMachine {
  std::string name;
  std::string description;
  std::string topology;               ///< in the synthetic form
  std::vector<std::string> products;  ///< values of nvidia.com/gpu.product; with the number of GPUs they name it
  std::vector<std::string> models;    ///< beginnings of nvidia.com/gpu.machine (the vendor's product name)
  std::string trace_model;            ///< how published traces spell the GPU model; empty: they have none of it
  Machine machine;
};

class Catalogue {
 public:
  /// Reads every *.yaml of a folder. Refuses machines that do not pass check(), and labels that would name two of them.
  static Result<Catalogue> load(const std::filesystem::path& folder);

  const std::vector<CatalogueMachine>& machines() const { return machines_; }  ///< by name
  /// Stands for the contents of its files.
  std::uint64_t digest() const { return digest_; }
  /// "unknown machine ...; known: ..." otherwise.
  Result<const CatalogueMachine*> find(std::string_view name) const;
  /// By vendor's product name first, then by GPU product and number of GPUs; null when nothing is known.
  const CatalogueMachine* match(std::string_view machine, std::string_view product, int gpus) const;

 private:
  Status check_labels() const;

  std::vector<CatalogueMachine> machines_;
  std::uint64_t digest_ = 0;
};

/// The name of a GPU product without what sharing adds ("-SHARED"); empty for one cut into MIG devices.
std::string_view whole_product(std::string_view product);

/// What GPU Feature Discovery's labels tell: number and model of the GPUs, and with a catalogue (may be null) the rest.
/// Nothing when there is no nvidia.com/gpu.product.
Result<std::optional<Reading>> read_node_labels(const std::map<std::string, std::string>& labels,
                                                const Catalogue* catalogue);

}  // namespace mortise::topology
