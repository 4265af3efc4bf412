#include "scheduler/extender/options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <limits>

#include "scheduler/extender/log.h"
#include "scheduler/placement/policy.h"

namespace mortise::extender {
namespace {

int tell(const std::string& text) {
  const bool written = std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  return written ? 0 : refuse("cannot write to standard output");
}

std::string policy_help() {
  std::string text = "How nodes are chosen; joined by + for a weighted sum. Known:";
  for (const placement::PolicyInfo& info : placement::policy_table()) text += " " + std::string(info.name);
  return text;
}

/// CLI11 wraps negative and too large numbers around; a number must be what was written.
CLI::Validator whole_number(std::uint64_t min, std::uint64_t max) {
  const auto check = [=](const std::string& text) -> std::string {
    std::uint64_t value = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool read = status == std::errc{} && end == text.data() + text.size();
    if (read && value >= min && value <= max) return {};
    return "'" + text + "'; allowed: a whole number from " + std::to_string(min) + " to " + std::to_string(max);
  };
  return {check, "N"};
}

void add_cluster_options(CLI::App& app, Options& options) {
  app.add_option("--cluster", options.start.cluster,
                 "Serve these nodes, without an API server: openb node CSV, Kubernetes List (JSON, YAML), file of node "
                 "pools, or machines of the catalogue as MACHINE:COUNT,...");
  CLI::Option* kubeconfig = app.add_option(
      "--kubeconfig", options.live.kubeconfig,
      "Serve the cluster of this file. Without it and --cluster: the cluster whose pod this program runs in");
  kubeconfig->excludes(app.get_option("--cluster"));
  app.add_option("--context", options.live.context, "Context of the kubeconfig; default: its current one")
      ->needs(kubeconfig);
  app.add_option("--lease", options.live.lease,
                 "NAMESPACE/NAME of a Lease: of several replicas, only the one that holds it answers")
      ->excludes(app.get_option("--cluster"));
  app.add_option("--dcgm-query-url", options.live.dcgm_query_url,
                 "Prometheus server (http://HOST:PORT) asked every 30 s for DCGM series: which pod is on which GPU")
      ->excludes(app.get_option("--cluster"));
  app.add_option("--scheduler-name", options.schedulers,
                 "Decide only for pods with this spec.schedulerName, and let the others pass; repeatable. Default: all")
      ->check([](const std::string& name) { return name.empty() ? std::string("a name is needed") : std::string(); })
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--catalogue", options.start.catalogue, "Folder of the machine catalogue");
  app.add_option("--policy", options.start.policy, policy_help())->capture_default_str();
  app.add_option("--seed", options.start.seed, "Of ranks and random choices")
      ->check(whole_number(0, std::numeric_limits<std::uint64_t>::max()))
      ->capture_default_str();
  app.add_option("--node-rank", options.start.node_rank, "File of `name rank` lines: the tie order of the nodes");
  app.add_option("--levels", options.start.levels,
                 "NAME=LABEL,...: topology levels above the nodes, coarse to fine, for gangs; default: as the nodes' "
                 "labels tell");
  app.add_option("--typical", options.start.typical, "Trace whose pods are typical; default: a generated one");
}

void add_listener_options(CLI::App& app, Options& options) {
  app.add_option("--listen", options.listen, "ADDR:PORT of filter, prioritize, bind and preempt; port 0: any")
      ->capture_default_str();
  app.add_option("--admin", options.admin, "ADDR:PORT of health, metrics, /v1 and a page; port 0: any")
      ->capture_default_str();
  app.add_option("--admin-token-file", options.admin_token_file,
                 "File with a token: only who sends it as Bearer token is told names of pods");
  app.add_flag("--allow-bind", options.allow_bind, "Serve bind on addresses other than loopback, too");
  app.add_option("--max-request-mib", options.max_request_mib, "Larger requests are refused")
      ->check(whole_number(1, 2048))
      ->capture_default_str();
  app.add_option("--max-connections", options.max_connections, "Of kube-scheduler at once; more are answered 503")
      ->check(whole_number(1, 32768))
      ->capture_default_str();
  app.add_option(
         "--max-verbs", options.max_verbs,
         "Filters, prioritizes and preempts worked on at once; others wait, at most 1 s. 0: twice the processors")
      ->check(whole_number(0, 4096))
      ->capture_default_str();
  app.add_option("--shutdown-grace", options.shutdown_grace, "Seconds that running requests may take at the end")
      ->check(whole_number(0, 3600))
      ->capture_default_str();
  CLI::Option* cert = app.add_option("--tls-cert", options.tls.certificate, "PEM certificate: --listen speaks HTTPS");
  CLI::Option* key = app.add_option("--tls-key", options.tls.key, "Its PEM key");
  cert->needs(key);
  key->needs(cert);
  app.add_option("--tls-client-ca", options.tls.client_ca, "PEM CAs: clients must have a certificate of one of them")
      ->needs(cert);
}

void add_log_options(CLI::App& app, Options& options) {
  app.add_option("--log-level", options.log_level, "What is written to stderr: this and what matters more")
      ->check(CLI::IsMember(log_level_names()))
      ->capture_default_str();
  app.add_option("--log-format", options.log_format, "text: key=value; json: an object a line")
      ->check(CLI::IsMember(log_format_names()))
      ->capture_default_str();
}

}  // namespace

int refuse(const std::string& why) {
  std::fprintf(stderr, "mortise-extender: %s\n", why.c_str());
  return 2;
}

std::optional<int> read_options(int argc, char** argv, Options& options) {
  CLI::App app("A kube-scheduler extender that places GPU pods.", "mortise-extender");
  app.set_version_flag("--version", "mortise-extender " MORTISE_VERSION, "Print the version");
  add_cluster_options(app, options);
  add_listener_options(app, options);
  add_log_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return tell(app.help());
  } catch (const CLI::CallForVersion& version) {
    return tell(std::string(version.what()) + "\n");
  } catch (const CLI::ParseError& error) {
    return refuse(std::string(error.what()) + " (see --help)");
  }
  return std::nullopt;
}

}  // namespace mortise::extender
