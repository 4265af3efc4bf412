#include <CLI/CLI.hpp>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <string>

#include "scheduler/base/clock.h"
#include "scheduler/extender/endpoint.h"
#include "scheduler/extender/handlers.h"
#include "scheduler/extender/http_server.h"
#include "scheduler/extender/metrics.h"
#include "scheduler/extender/service.h"
#include "scheduler/extender/startup.h"
#include "scheduler/placement/policy.h"

namespace {

using namespace mortise;
using namespace mortise::extender;

struct Options {
  StartOptions start;
  std::string listen = "127.0.0.1:8888";
  std::string admin = "127.0.0.1:8889";
  bool allow_bind = false;
  std::size_t max_request_mib = 256;
};

int refuse(const std::string& why) {
  std::fprintf(stderr, "mortise-extender: %s\n", why.c_str());
  return 2;
}

std::string policy_help() {
  std::string text = "How nodes are chosen; joined by + for a weighted sum. Known:";
  for (const placement::PolicyInfo& info : placement::policy_table()) text += " " + std::string(info.name);
  return text;
}

/// CLI11 wraps negative and too large numbers around; a seed must be what was written.
std::string check_seed(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status == std::errc{} && end == text.data() + text.size()) return {};
  return "'" + text + "'; allowed: a whole number from 0 to 18446744073709551615";
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("--cluster", options.start.cluster,
                 "Nodes to serve: openb node CSV, Kubernetes List (JSON, YAML), file of node pools, or machines of the "
                 "catalogue as MACHINE:COUNT,...")
      ->required();
  app.add_option("--catalogue", options.start.catalogue, "Folder of the machine catalogue");
  app.add_option("--policy", options.start.policy, policy_help())->capture_default_str();
  app.add_option("--seed", options.start.seed, "Of ranks and random choices")
      ->check(CLI::Validator(check_seed, "UINT64"))
      ->capture_default_str();
  app.add_option("--node-rank", options.start.node_rank, "File of `name rank` lines: the tie order of the nodes");
  app.add_option("--typical", options.start.typical, "Trace whose pods are typical; default: a generated one");
  app.add_option("--listen", options.listen, "ADDR:PORT of filter, prioritize and bind; port 0: any")
      ->capture_default_str();
  app.add_option("--admin", options.admin, "ADDR:PORT of healthz, readyz and metrics; port 0: any")
      ->capture_default_str();
  app.add_flag("--allow-bind", options.allow_bind, "Serve bind on addresses other than loopback, too");
  app.add_option("--max-request-mib", options.max_request_mib, "Larger requests are refused")
      ->check(CLI::Range(1, 2048))
      ->capture_default_str();
}

/// Until SIGTERM or SIGINT, which every thread started from here on leaves to this one.
void wait_for_stop(const sigset_t& stop_signals) {
  int received = 0;
  sigwait(&stop_signals, &received);
}

int serve(const Options& options) {
  sigset_t stop_signals;
  sigemptyset(&stop_signals);
  sigaddset(&stop_signals, SIGTERM);
  sigaddset(&stop_signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stop_signals, nullptr);

  const Result<Endpoint> listen_at = parse_endpoint(options.listen);
  if (!listen_at.ok()) return refuse("--listen: " + listen_at.message());
  const Result<Endpoint> admin_at = parse_endpoint(options.admin);
  if (!admin_at.ok()) return refuse("--admin: " + admin_at.message());
  const Result<LoadedCluster> cluster = load(options.start);
  if (!cluster.ok()) return refuse(cluster.message());
  for (const std::string& note : cluster->notes) std::fprintf(stderr, "note: %s\n", note.c_str());

  const SteadyClock clock;
  Metrics metrics;
  Handlers handlers(*cluster->engine, *cluster->state, clock);
  for (const kube::BoundPod& pod : cluster->bound) handlers.adopt(pod.request, pod.node);
  Service service(handlers, *cluster->state, *cluster->fragmentation, metrics, clock);

  const ServerOptions server_options{.max_request_bytes = options.max_request_mib << 20,
                                     .allow_bind = options.allow_bind};
  const auto scheduler = HttpServer::start_scheduler(service, *listen_at, server_options);
  if (!scheduler.ok()) return refuse(scheduler.message());
  const auto admin = HttpServer::start_admin(service, *admin_at);
  if (!admin.ok()) return refuse(admin.message());
  std::printf("listening on %s\nadmin on %s\n", (*scheduler)->address().c_str(), (*admin)->address().c_str());
  std::fflush(stdout);
  wait_for_stop(stop_signals);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("A kube-scheduler extender that places GPU pods.", "mortise-extender");
  add_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return 0;
  } catch (const CLI::ParseError& error) {
    return refuse(std::string(error.what()) + " (see --help)");
  }
  return serve(options);
}
