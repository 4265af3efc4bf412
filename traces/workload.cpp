#include "traces/workload.h"

#include <algorithm>
#include <sstream>

namespace mortise::traces {

std::vector<std::string> split_models(const std::string& gpu_spec) {
  std::vector<std::string> models;
  std::istringstream in(gpu_spec);
  for (std::string model; std::getline(in, model, '|');) {
    if (!model.empty()) models.push_back(model);
  }
  std::sort(models.begin(), models.end());
  models.erase(std::unique(models.begin(), models.end()), models.end());
  return models;
}

}  // namespace mortise::traces
