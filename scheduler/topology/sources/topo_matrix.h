#pragma once

#include <string_view>

#include "scheduler/base/result.h"
#include "scheduler/topology/sources/source.h"

namespace mortise::topology {

bool looks_like_topo_matrix(std::string_view text);

/// Reads what `nvidia-smi topo -m` prints, of drivers from 2016 on: with or without columns for NICs, NUMA affinity and
/// GPU NUMA ids, separated by tabs or blanks or, between cells, not at all. Text before and after the table is skipped.
/// Where the two cells of a pair differ, the worse link is taken and noted. A table that is cut is refused.
Result<Reading> read_topo_matrix(std::string_view text, std::string_view file);

}  // namespace mortise::topology
