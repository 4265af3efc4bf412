#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
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
#include "scheduler/extender/evictions.h"
#include "scheduler/extender/gang_feed.h"
#include "scheduler/extender/gangs.h"
#include "scheduler/extender/handlers.h"
#include "scheduler/extender/http_server.h"
#include "scheduler/extender/live.h"
#include "scheduler/extender/log.h"
#include "scheduler/extender/metrics.h"
#include "scheduler/extender/options.h"
#include "scheduler/extender/readiness.h"
#include "scheduler/extender/service.h"
#include "scheduler/extender/startup.h"
#include "scheduler/extender/tls.h"

namespace {

using namespace mortise;
using namespace mortise::extender;

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
  for (const Evictor::News& news : live.new_evictions()) {
    const std::string pod = news.order.ns + "/" + news.order.name;
    if (news.error.empty()) {
      log.write(LogLevel::kInfo, "evicted", {{"pod", pod}, {"uid", news.order.uid}, {"for", news.order.preemptor}});
    } else {
      log.write(LogLevel::kWarn, "not_evicted",
                {{"pod", pod}, {"uid", news.order.uid}, {"for", news.order.preemptor}, {"error", news.error}});
    }
  }
}

/// Until SIGTERM or SIGINT. With a cluster file nothing else tells the time.
void wait_for_stop(const sigset_t& signals, Certificates& certificates, Live* live, Service& service,
                   Readiness& readiness, Log& log) {
  const timespec look_again{live != nullptr ? 5 : 1, 0};
  constexpr timespec kLookSoon{0, 100'000'000};
  std::string was = "not asked yet";
  for (;;) {
    if (live != nullptr) {
      look_after(*live, readiness, log);
    } else {
      service.tick();
    }
    const std::string obstacle = readiness.obstacle();
    if (obstacle.empty() && !was.empty()) log.write(LogLevel::kInfo, "ready", {});
    if (!obstacle.empty() && obstacle != was) log.write(LogLevel::kInfo, "not_ready", {{"why", obstacle}});
    was = obstacle;
    const bool soon = !obstacle.empty();
    const int received = sigtimedwait(&signals, nullptr, soon ? &kLookSoon : &look_again);
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

ServerOptions scheduler_side(const Options& options, const Certificates& certificates, const Readiness& readiness,
                             Metrics& metrics, Live* live) {
  ServerOptions side = limits(options);
  side.tls = certificates.context();
  side.readiness = &readiness;
  side.metrics = &metrics;
  if (live != nullptr) side.asked = [live] { live->asked(); };
  return side;
}

void place_gangs(Gangs& gangs, GangFeed& feed, Evictions& evictions, LoadedCluster& cluster, Handlers& handlers,
                 const Clock& clock, Live* live) {
  handlers.place_gangs(gangs, feed);
  if (live == nullptr) {
    feed.forget_by(clock);
    tell_gangs(cluster, feed);
    return;
  }
  live->feed_gangs(gangs, feed, *cluster.domains);
  live->carry_out(evictions);
  gangs.evict_through(evictions);
  handlers.evict_through(evictions);
}

ClusterView::Parts view_of(Service& service, LoadedCluster& cluster, Handlers& handlers, Metrics& metrics,
                           const Readiness& readiness, const Gangs& gangs, const Clock& clock, const Live* live) {
  ClusterView::Parts parts{service,  *cluster.state, *cluster.engine, *cluster.fragmentation,
                           handlers, metrics,        readiness};
  parts.gangs = &gangs;
  parts.bookings = cluster.bookings.get();
  parts.clock = &clock;
  if (live == nullptr) return parts;
  parts.watches = [live] { return live->watch_figures(); };
  parts.woken = [live] { return live->members_woken(); };
  parts.evicted = [live] { return live->pods_evicted(); };
  parts.plans = [live] { return live->plans_stored(); };
  return parts;
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
  Gangs gangs(*cluster->bookings, *cluster->state, *cluster->domains, *cluster->gang_policy, options.start.seed, clock);
  GangFeed gang_feed(gangs);
  Evictions evictions(*cluster->bookings, clock);
  place_gangs(gangs, gang_feed, evictions, *cluster, handlers, clock, live.get());
  Service service(handlers, *cluster->state, *cluster->fragmentation, metrics, clock, live ? &live->binder() : nullptr,
                  &log);
  if (live) service.store_plans(live->plans());

  Readiness readiness;
  expect(live.get(), readiness);

  const ServerOptions server_options = scheduler_side(options, certificates, readiness, metrics, live.get());
  const auto scheduler = HttpServer::start_scheduler(service, *listen_at, server_options);
  if (!scheduler.ok()) return refuse(scheduler.message());
  ClusterView view(view_of(service, *cluster, handlers, metrics, readiness, gangs, clock, live.get()));
  const AdminToken token(options.admin_token_file);
  const auto admin = HttpServer::start_admin(service, *admin_at,
                                             {.readiness = &readiness,
                                              .metrics = &metrics,
                                              .view = &view,
                                              .token = options.admin_token_file.empty() ? nullptr : &token});
  if (!admin.ok()) return refuse(admin.message());
  std::printf("listening on %s\nadmin on %s\n", (*scheduler)->address().c_str(), (*admin)->address().c_str());
  std::fflush(stdout);
  if (live) live->start(service.mutex());
  log.write(LogLevel::kInfo, "serving", {{"listen", (*scheduler)->address()}, {"admin", (*admin)->address()}});
  wait_for_stop(signals, certificates, live.get(), service, readiness, log);
  log.write(LogLevel::kInfo, "stopping", {});
  readiness.set_unmet(Readiness::Condition::kServing, "shutting down");
  (*scheduler)->stop(options.shutdown_grace * kSecond, [&] {
    if (live) live->stop_binding();
  });
  if (live) live->stop();  // its threads use what ends before it
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (const std::optional<int> ended = read_options(argc, argv, options)) return *ended;
  return serve(options);
}
