#include "sim/arrivals.h"

#include <filesystem>
#include <sstream>
#include <variant>

#include "sim/files.h"

namespace mortise::sim {

Result<ArrivalPlan> load_arrival(std::string_view option) {
  auto spec = traces::parse_arrival(option);
  if (!spec) return spec.error();
  ArrivalPlan plan;
  plan.spec = *std::move(spec);
  plan.label = option;
  if (const auto* order = std::get_if<traces::OrderFile>(&plan.spec)) {
    auto text = read_file(order->path);
    if (!text) return text.error();
    plan.file_text = *std::move(text);
    plan.label = "order:" + std::filesystem::path(order->path).filename().string();
  }
  return plan;
}

Result<std::vector<traces::Arrival>> make_arrivals(const ArrivalPlan& plan, const traces::Trace& trace,
                                                   MilliGpu capacity, std::uint64_t seed) {
  if (const auto* inflation = std::get_if<traces::Inflate>(&plan.spec)) {
    return traces::inflate(trace, inflation->ratio, capacity, seed);
  }
  std::istringstream in(plan.file_text);
  return traces::read_order(trace, in, std::get<traces::OrderFile>(plan.spec).path);
}

}  // namespace mortise::sim
