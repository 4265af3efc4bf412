#include "scheduler/kube/objects/decision_stamp.h"

#include <nlohmann/json.hpp>

namespace mortise::kube {

std::string DecisionStamp::text() const {
  nlohmann::ordered_json object;
  object["order"] = order;
  object["nodes"] = nodes;
  object["pods"] = pods;
  return object.dump();
}

}  // namespace mortise::kube
