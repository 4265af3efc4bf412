#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "scheduler/placement/policy.h"
#include "sim/tables.h"
#include "sim/verbs.h"

namespace mortise::sim {

namespace {

std::string policies_json() {
  auto json = nlohmann::ordered_json::array();
  for (const placement::PolicyInfo& policy : placement::policy_table()) {
    json.push_back(
        {{"name", policy.name}, {"own", policy.own}, {"description", policy.description}, {"options", policy.options}});
  }
  return json.dump() + "\n";
}

std::string policies_text() {
  std::vector<std::vector<std::string>> rows = {{"name", "origin", "description", "options"}};
  for (const placement::PolicyInfo& policy : placement::policy_table()) {
    rows.push_back({std::string(policy.name), policy.own ? "own" : "published", std::string(policy.description),
                    policy.options.empty() ? "-" : std::string(policy.options)});
  }
  return align_columns(rows, {false, false, false, false}) +
         "\nPolicies may be summed: a+b, or with weights a+2*b; ties as of the first.\n";
}

}  // namespace

VerbRun add_policies(CLI::App& app) {
  const auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "One JSON document on stdout");
  return [json]() -> Result<int> {
    if (const Status status = print(*json ? policies_json() : policies_text()); !status) return status.error();
    return kExitDone;
  };
}

}  // namespace mortise::sim
