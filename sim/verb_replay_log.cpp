#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/compare.h"
#include "sim/decision_replay.h"
#include "sim/option_values.h"
#include "sim/tables.h"
#include "sim/verbs.h"

namespace mortise::sim {

namespace {

constexpr std::size_t kShownDifferences = 20;

struct ReplayLogOptions {
  DecisionReplaySpec spec;
  std::string seed = "1";
  bool json = false;
};

std::string result_json(const DecisionReplaySpec& spec, const DecisionReplayResult& result) {
  nlohmann::ordered_json json;
  json["policy"] = spec.policy;
  json["seed"] = spec.seed;
  json["decisions"] = result.decisions;
  json["same"] = result.same;
  json["other_devices"] = result.other_devices;
  json["other_node"] = result.other_node;
  json["not_placed"] = result.not_placed;
  auto& differences = json["differences"] = nlohmann::ordered_json::array();
  for (const Difference& difference : result.differences) {
    differences.push_back({{"pod", difference.pod},
                           {"was", {{"node", difference.was_node}, {"devices", difference.was_devices}}},
                           {"now", {{"node", difference.now_node}, {"devices", difference.now_devices}}}});
  }
  return json.dump() + "\n";
}

std::string result_text(const DecisionReplayResult& result) {
  std::string text = fmt::format(
      "{} of {} decisions differ: {} on another node, {} with other devices, {} not placed\n",
      result.decisions - result.same, result.decisions, result.other_node, result.other_devices, result.not_placed);
  if (result.differences.empty()) return text;
  std::vector<std::vector<std::string>> rows = {{"pod", "was", "devices", "now", "devices"}};
  const std::size_t shown = std::min(result.differences.size(), kShownDifferences);
  for (std::size_t i = 0; i < shown; ++i) {
    const Difference& difference = result.differences[i];
    const auto or_dash = [](const std::string& word) { return word.empty() ? std::string("-") : word; };
    rows.push_back({difference.pod, difference.was_node, or_dash(difference.was_devices), or_dash(difference.now_node),
                    or_dash(difference.now_devices)});
  }
  text += align_columns(rows, {false, false, false, false, false});
  if (shown < result.differences.size()) text += fmt::format("... and {} more\n", result.differences.size() - shown);
  return text;
}

Result<int> run_replay_log(ReplayLogOptions& options) {
  const auto seed = parse_number(options.seed, "--seed");
  if (!seed) return seed.error();
  options.spec.seed = *seed;
  if (const Status status = check_policies({options.spec.policy}); !status) return status.error();
  const auto result = replay_decisions(options.spec);
  if (!result) return result.error();
  for (const std::string& note : result->notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  const Status status = print(options.json ? result_json(options.spec, *result) : result_text(*result));
  if (!status) return status.error();
  return result->same == result->decisions ? kExitDone : kExitNo;
}

}  // namespace

VerbRun add_replay_log(CLI::App& app) {
  const auto options = std::make_shared<ReplayLogOptions>();
  app.add_option("--log", options->spec.log, "What happened in a live cluster, one JSON object a line (docs/replay.md)")
      ->type_name("FILE")
      ->required();
  app.add_option("--policy", options->spec.policy, "Placement policy; 'mortise policies' lists them")
      ->type_name("NAME")
      ->required();
  app.add_option("--seed", options->seed, "Seed of tie order and random choices: the extender's --seed")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--typical", options->spec.typical, "Trace whose pods are typical; default: as the extender's")
      ->type_name("FILE");
  app.add_option("--catalogue", options->spec.catalogue, "Folder of the machine catalogue")->type_name("DIR");
  app.add_flag("--json", options->json, "One JSON document on stdout");
  return [options] { return run_replay_log(*options); };
}

}  // namespace mortise::sim
