#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/base/clock.h"
#include "scheduler/extender/admin_token.h"
#include "scheduler/extender/cluster_view.h"
#include "scheduler/extender/endpoint.h"
#include "scheduler/extender/handlers.h"
#include "scheduler/extender/http_server.h"
#include "scheduler/extender/live.h"
#include "scheduler/extender/log.h"
#include "scheduler/extender/metrics.h"
#include "scheduler/extender/readiness.h"
#include "scheduler/extender/service.h"
#include "scheduler/extender/startup.h"
#include "scheduler/extender/tls.h"
#include "scheduler/placement/policy.h"

namespace {

using namespace mortise;
using namespace mortise::extender;

struct Options {
  StartOptions start;
  LiveOptions live;
  std::string listen = "127.0.0.1:8888";
  std::string admin = "127.0.0.1:8889";
  std::vector<std::string> schedulers;
  bool allow_bind = false;
  std::size_t max_request_mib = 256;
  std::size_t max_connections = 1280;
  std::size_t max_verbs = 0;
  std::int64_t shutdown_grace = 10;
  TlsFiles tls;
  std::string admin_token_file;
  std::string log_level = "info";
  std::string log_format = "text";
};

int refuse(const std::string& why) {
  std::fprintf(stderr, "mortise-extender: %s\n", why.c_str());
  return 2;
}

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

void add_options(CLI::App& app, Options& options) {
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
  app.add_option("--typical", options.start.typical, "Trace whose pods are typical; default: a generated one");
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
  app.add_option("--log-level", options.log_level, "What is written to stderr: this and what matters more")
      ->check(CLI::IsMember(log_level_names()))
      ->capture_default_str();
  app.add_option("--log-format", options.log_format, "text: key=value; json: an object a line")
      ->check(CLI::IsMember(log_format_names()))
      ->capture_default_str();
  CLI::Option* cert = app.add_option("--tls-cert", options.tls.certificate, "PEM certificate: --listen speaks HTTPS");
  CLI::Option* key = app.add_option("--tls-key", options.tls.key, "Its PEM key");
  cert->needs(key);
  key->needs(cert);
  app.add_option("--tls-client-ca", options.tls.client_ca, "PEM CAs: clients must have a certificate of one of them")
      ->needs(cert);
}

/// Loads the certificate, and again when its files change.
class Certificates {
 public:
  Certificates(Metrics& metrics, Log& log) : metrics_(metrics), log_(log) {}

  /// What is wrong with the files; nothing is done when none are given.
  Status load(const TlsFiles& files) {
    if (files.certificate.empty()) return ok_status();
    Result<std::unique_ptr<TlsContext>> loaded = TlsContext::load(files);
    if (!loaded.ok()) return loaded.error();
    context_ = *std::move(loaded);
    metrics_.set_tls(true, context_->expires());
    return ok_status();
  }
  const TlsContext* context() const { return context_.get(); }

  void reload() {
    if (context_) report(context_->reload());
  }
  void reload_if_changed() {
    const auto changed = context_ ? context_->reload_if_changed() : std::nullopt;
    if (changed) report(*changed);
  }

 private:
  void report(const Status& outcome) {
    metrics_.set_tls(outcome.ok(), context_->expires());
    if (outcome.ok()) {
      log_.write(LogLevel::kInfo, "certificate_reloaded", {{"expires", context_->expires()}});
    } else {
      log_.write(LogLevel::kWarn, "certificate_kept", {{"error", outcome.message()}});
    }
  }

  Metrics& metrics_;
  Log& log_;
  std::unique_ptr<TlsContext> context_;
};

/// Tells what the watches found. What is known stays valid while they are interrupted: once synced, always synced.
void look_after(Live& live, Readiness& readiness, Log& log) {
  const std::string waiting_for = live.waiting_for();
  if (waiting_for.empty()) {
    readiness.set_met(Readiness::Condition::kSynced);
  } else {
    readiness.set_unmet(Readiness::Condition::kSynced, waiting_for);
  }
  for (const std::string& note : live.new_notes()) log.write(LogLevel::kWarn, "note", {{"text", note}});
  for (const std::string& trouble : live.new_troubles()) log.write(LogLevel::kWarn, "watch", {{"error", trouble}});
}

/// Until SIGTERM or SIGINT.
void wait_for_stop(const sigset_t& signals, Certificates& certificates, Live* live, Readiness& readiness, Log& log) {
  constexpr timespec kLookAgain{5, 0};
  constexpr timespec kLookSoon{0, 100'000'000};
  std::string was = "not asked yet";
  for (;;) {
    if (live != nullptr) look_after(*live, readiness, log);
    const std::string obstacle = readiness.obstacle();
    if (obstacle.empty() && !was.empty()) log.write(LogLevel::kInfo, "ready", {});
    if (!obstacle.empty() && obstacle != was) log.write(LogLevel::kInfo, "not_ready", {{"why", obstacle}});
    was = obstacle;
    const bool soon = !obstacle.empty();
    const int received = sigtimedwait(&signals, nullptr, soon ? &kLookSoon : &kLookAgain);
    if (received == SIGTERM || received == SIGINT) return;
    if (received == SIGHUP) {
      certificates.reload();
    } else {
      certificates.reload_if_changed();
    }
  }
}

/// Different for every process that ever was: a name, and what no two of one name share.
std::string replica_name() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  std::random_device draw;
  return std::string(host) + "_" + std::to_string(getpid()) + "_" + std::to_string(draw());
}

Result<std::unique_ptr<Live>> prepare_live(const Options& options, LoadedCluster& cluster, const Clock& clock) {
  LiveOptions live = options.live;
  live.catalogue = options.start.catalogue;
  live.seed = options.start.seed;
  live.identity = replica_name();
  Result<std::unique_ptr<Live>> prepared = Live::prepare(live, *cluster.state, *cluster.bookings, clock);
  if (prepared.ok() || !options.live.kubeconfig.empty()) return prepared;
  return Error{"no --cluster and no --kubeconfig, and " + prepared.message()};
}

/// Every thread started from here on leaves them to this one.
sigset_t block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

/// A file is read whole before anything is served, and nobody else serves it.
void expect(const Live* live, Readiness& readiness) {
  if (live != nullptr) {
    readiness.ask_leader([live] { return live->why_not_leader(); });
  } else {
    readiness.set_met(Readiness::Condition::kSynced);
    readiness.set_met(Readiness::Condition::kLeader);
  }
}

Status check_admin_token(const std::string& file) {
  if (file.empty()) return ok_status();
  const Status usable = AdminToken(file).check();
  return usable.ok() ? usable : Error{"--admin-token-file " + usable.message()};
}

/// The value of a flag whose allowed ones are these, as the enumerator of the same place.
template <class E>
E chosen(const std::string& value, const std::vector<std::string>& names) {
  return static_cast<E>(std::find(names.begin(), names.end(), value) - names.begin());
}

Log make_log(const Options& options, const Clock& clock) {
  return {stderr, clock, chosen<LogLevel>(options.log_level, log_level_names()),
          chosen<LogFormat>(options.log_format, log_format_names())};
}

ServerOptions limits(const Options& options) {
  return {.max_request_bytes = options.max_request_mib << 20,
          .max_connections = options.max_connections,
          .max_verbs = options.max_verbs,
          .allow_bind = options.allow_bind};
}

int serve(const Options& options) {
  const sigset_t signals = block_signals();
  const Result<Endpoint> listen_at = parse_endpoint(options.listen);
  if (!listen_at.ok()) return refuse("--listen: " + listen_at.message());
  const Result<Endpoint> admin_at = parse_endpoint(options.admin);
  if (!admin_at.ok()) return refuse("--admin: " + admin_at.message());
  if (const Status usable = check_admin_token(options.admin_token_file); !usable.ok()) return refuse(usable.message());
  Result<LoadedCluster> cluster = load(options.start);
  if (!cluster.ok()) return refuse(cluster.message());

  const SteadyClock clock;
  Log log = make_log(options, clock);
  for (const std::string& note : cluster->notes) log.write(LogLevel::kWarn, "note", {{"text", note}});
  Metrics metrics;
  Certificates certificates(metrics, log);
  if (const Status loaded = certificates.load(options.tls); !loaded.ok()) return refuse(loaded.message());
  std::unique_ptr<Live> live;
  if (options.start.cluster.empty()) {
    Result<std::unique_ptr<Live>> prepared = prepare_live(options, *cluster, clock);
    if (!prepared.ok()) return refuse(prepared.message());
    live = *std::move(prepared);
  }
  Handlers handlers(*cluster->engine, *cluster->bookings, clock, live ? Live::kReserveFor : 0,
                    live ? live->waiting() : Handlers::Waiting(), live ? live->stamp() : Handlers::Stamp());
  handlers.decide_only_for(options.schedulers);
  Service service(handlers, *cluster->state, *cluster->fragmentation, metrics, clock, live ? &live->binder() : nullptr,
                  &log);

  Readiness readiness;
  expect(live.get(), readiness);

  ServerOptions server_options = limits(options);
  server_options.tls = certificates.context();
  server_options.readiness = &readiness;
  server_options.metrics = &metrics;
  if (live) server_options.asked = [live = live.get()] { live->asked(); };
  const auto scheduler = HttpServer::start_scheduler(service, *listen_at, server_options);
  if (!scheduler.ok()) return refuse(scheduler.message());
  ClusterView view(
      {service, *cluster->state, *cluster->engine, *cluster->fragmentation, handlers, metrics, readiness,
       live ? std::function([&live] { return live->watch_figures(); }) : std::function<std::vector<WatchFigures>()>()});
  const AdminToken token(options.admin_token_file);
  const bool has_token = !options.admin_token_file.empty();
  const auto admin = HttpServer::start_admin(
      service, *admin_at,
      {.readiness = &readiness, .metrics = &metrics, .view = &view, .token = has_token ? &token : nullptr});
  if (!admin.ok()) return refuse(admin.message());
  std::printf("listening on %s\nadmin on %s\n", (*scheduler)->address().c_str(), (*admin)->address().c_str());
  std::fflush(stdout);
  if (live) live->start(service.mutex());
  log.write(LogLevel::kInfo, "serving", {{"listen", (*scheduler)->address()}, {"admin", (*admin)->address()}});
  wait_for_stop(signals, certificates, live.get(), readiness, log);
  log.write(LogLevel::kInfo, "stopping", {});
  readiness.set_unmet(Readiness::Condition::kServing, "shutting down");
  (*scheduler)->stop(options.shutdown_grace * kSecond);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("A kube-scheduler extender that places GPU pods.", "mortise-extender");
  app.set_version_flag("--version", "mortise-extender " MORTISE_VERSION, "Print the version");
  add_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return tell(app.help());
  } catch (const CLI::CallForVersion& version) {
    return tell(std::string(version.what()) + "\n");
  } catch (const CLI::ParseError& error) {
    return refuse(std::string(error.what()) + " (see --help)");
  }
  return serve(options);
}
