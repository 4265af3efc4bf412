#pragma once

#include <string>
#include <vector>

#include "sim/explain.h"

namespace mortise::sim {

/// One answer as a document; of several, `fits` of all and the list of them.
std::string explain_json(const std::vector<Answer>& answers);
std::string explain_text(const std::vector<Answer>& answers);

}  // namespace mortise::sim
