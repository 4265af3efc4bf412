#pragma once

#include <string>

#include "scheduler/base/result.h"
#include "scheduler/topology/sources/source.h"

namespace mortise::sim {

/// Where `mortise topo` gets its machine from; exactly one of the first four is set.
struct TopoSource {
  std::string matrix;     ///< file with the output of nvidia-smi topo -m
  std::string machine;    ///< name in the catalogue
  std::string node;       ///< file about a node: Kubernetes objects, hwloc XML, or another form of a topology
  std::string synthetic;  ///< the one-line form itself
  std::string name;       ///< of the node, where the file has several
  std::string gpu;        ///< model of the GPUs where the source gives none
  std::string catalogue;  ///< folder; empty: the one that came with the program
};

Result<topology::Reading> load_topology(const TopoSource& source);

}  // namespace mortise::sim
