#pragma once

#include <string>
#include <string_view>

#include "scheduler/base/result.h"
#include "scheduler/topology/topology_manager.h"

namespace mortise::topology {

/// Answers the cases of `mortise admit`: one JSON object in, one out. docs/topology-manager.md describes both.
class AdmitCases {
 public:
  /// The answer on one line, without the line break. An error says what is wrong with the case.
  Result<std::string> answer(std::string_view json_line);

 private:
  TopologyManager manager_;
  HintMerger merger_;
};

}  // namespace mortise::topology
