#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "sim/cluster_options.h"
#include "sim/compare.h"
#include "sim/explain.h"
#include "sim/explain_report.h"
#include "sim/option_values.h"
#include "sim/verbs.h"

namespace mortise::sim {

namespace {

struct ExplainOptions {
  ClusterArguments cluster;
  std::string pods;
  std::string policy = "fgd:tie=best-fit";  // as the extender's
  std::string seed = "1";
  bool json = false;
};

Result<std::vector<Answer>> explain(const ExplainOptions& options, const ClusterInput& cluster, std::uint64_t seed) {
  auto manifest = read_manifest(options.pods);
  if (!manifest) return manifest.error();
  for (const kube::GroupObject& group : cluster.file.groups) {
    if (manifest->objects.find(group.kind, group.ns, group.name) == nullptr) manifest->objects.put(group);
  }
  for (const std::string& note : manifest->notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  auto asks = asks_of(*manifest, cluster.file.placed);
  if (!asks) return asks.error();
  auto explainer = Explainer::make(cluster, options.policy, seed);
  if (!explainer) return explainer.error();
  if (const Status status = explainer->check(*manifest); !status) return status.error();
  std::vector<Answer> answers;
  for (Ask& ask : *asks) {
    auto answer = explainer->answer(std::move(ask));
    if (!answer) return answer.error();
    answers.push_back(*std::move(answer));
  }
  return answers;
}

Result<int> run_explain(const ExplainOptions& options) {
  const auto seed = parse_number(options.seed, "--seed");
  if (!seed) return seed.error();
  if (const Status status = check_policies({options.policy}); !status) return status.error();
  ClusterArguments arguments = options.cluster;
  arguments.live_models = true;
  const auto cluster = load_cluster(arguments, Digest::kNone);
  if (!cluster) return cluster.error();
  const auto answers = explain(options, *cluster, *seed);
  if (!answers) return answers.error();
  for (const std::string& note : cluster->file.notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  const Status status = print(options.json ? explain_json(*answers) + "\n" : explain_text(*answers));
  if (!status) return status.error();
  const bool all = std::all_of(answers->begin(), answers->end(), [](const Answer& answer) { return answer.fits; });
  return all ? kExitDone : kExitNo;
}

}  // namespace

VerbRun add_explain(CLI::App& app) {
  const auto options = std::make_shared<ExplainOptions>();
  add_cluster_options(app, options->cluster);
  app.add_option("--pod", options->pods,
                 "Pods as JSON or YAML, with the objects that say how large their gangs are, or workloads without pods")
      ->type_name("FILE")
      ->required();
  app.add_option("--policy", options->policy, "Placement policy; 'mortise policies' lists them")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--seed", options->seed, "Seed of tie order and random choices")
      ->type_name("N")
      ->capture_default_str();
  app.add_flag("--json", options->json, "One JSON document on stdout");
  return [options] { return run_explain(*options); };
}

}  // namespace mortise::sim
