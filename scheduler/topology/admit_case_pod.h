#pragma once

#include <nlohmann/json_fwd.hpp>

#include "scheduler/topology/admit_case.h"
#include "scheduler/topology/json_fields.h"

namespace mortise::topology {

/// The `pod` of a case: a Pod object of Kubernetes or just its spec. Fields of no meaning here are passed over.
void read_pod(JsonFields& fields, const nlohmann::json& json, AdmitCase& result);

/// What containers hold from before a restart: container -> devices, cpus, memory. Takes it from the node.
void read_assigned(JsonFields& fields, const nlohmann::json& json, AdmitCase& result);

}  // namespace mortise::topology
