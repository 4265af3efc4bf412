#include "scheduler/extender/live.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "scheduler/base/quote.h"

namespace mortise::extender {
namespace {

std::uint64_t troubles(const kube::ReflectorStatus& status) {
  return status.failures + status.expired + status.gaps;
}

/// Namespace and name.
Result<std::pair<std::string, std::string>> parse_lease(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == 0 || slash == std::string::npos || slash + 1 == text.size() ||
      text.find('/', slash + 1) != std::string::npos) {
    return Error{"--lease " + quote(text) + " is not NAMESPACE/NAME"};
  }
  return std::pair(text.substr(0, slash), text.substr(slash + 1));
}

}  // namespace

Live::Live(const LiveOptions& options, placement::ClusterState& cluster, Bookings& bookings, const Clock& clock)
    : options_(options),
      clock_(clock),
      catalogue_(options.catalogue),
      feed_(cluster, bookings, catalogue_, options.seed) {}

Live::~Live() {
  stop();
}

Result<std::unique_ptr<Live>> Live::prepare(const LiveOptions& options, placement::ClusterState& cluster,
                                            Bookings& bookings, const Clock& clock) {
  const Result<kube::ApiConfig> config = options.kubeconfig.empty()
                                             ? kube::in_cluster_config()
                                             : kube::read_kubeconfig(options.kubeconfig, options.context);
  if (!config.ok()) return config.error();
  Result<std::unique_ptr<kube::ApiClient>> client = kube::ApiClient::make(*config, {}, clock);
  if (!client.ok()) return client.error();
  std::unique_ptr<Live> live(new Live(options, cluster, bookings, clock));
  live->client_ = *std::move(client);
  if (!options.lease.empty()) {
    const auto lease = parse_lease(options.lease);
    if (!lease.ok()) return lease.error();
    live->lease_.emplace(*live->client_, lease->first, lease->second);
    live->leadership_.emplace(*live->lease_, options.identity, clock,
                              [live = live.get()] { return live->binder_->busy(); });
  }
  if (!options.dcgm_query_url.empty()) {
    Result<std::unique_ptr<DcgmPoll>> dcgm = DcgmPoll::make(options.dcgm_query_url, clock);
    if (!dcgm.ok()) return Error{"--dcgm-query-url " + dcgm.message()};
    live->dcgm_ = *std::move(dcgm);
  }
  ApiBinder::TimeLeft time_left;
  if (live->leadership_) time_left = [leadership = &*live->leadership_] { return leadership->time_left(); };
  live->binder_.emplace(
      *live->client_, live->waiter_, live->stop_.get_token(), [live = live.get()] { return live->why_not_leader(); },
      std::move(time_left));
  live->plan_store_.emplace(*live->client_, live->waiter_, live->stop_.get_token());
  live->plan_writer_.emplace(*live->plan_store_);
  return live;
}

Handlers::Waiting Live::waiting() {
  return [this](std::string_view uid) { return feed_.waiting(uid); };
}

Handlers::Stamp Live::stamp() {
  return [this] { return kube::DecisionStamp{++decisions_, feed_.nodes_version(), feed_.pods_version()}; };
}

void Live::start(std::mutex& mutex) {
  mutex_ = &mutex;
  if (leadership_) {
    elects_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        leadership_->step(std::chrono::system_clock::now());
        waiter_.wait(Leadership::kEvery, stop);
      }
      leadership_->resign(std::chrono::system_clock::now());
    });
  }
  if (gangs_ != nullptr) {
    const auto too_early = [this] { return waiting_for() + why_not_leading(); };
    recovery_.emplace(*gangs_, *gang_feed_, mutex, *plan_store_, clock_, too_early);
  }
  cluster_.emplace(*client_, feed_, mutex, clock_, waiter_, options_.seed, gang_feed_);
  const auto why_not = [this] { return waiting_for() + why_not_leader(); };
  if (evictions_ != nullptr) {
    evictor_.emplace(*evictions_, mutex, *client_, waiter_, why_not);
    evicts_ = std::jthread([this](const std::stop_token& stop) { evictor_->run(stop); });
  }
  if (gangs_ != nullptr) {
    waker_.emplace(*gangs_, mutex, *client_, *plan_writer_, clock_, waiter_, why_not, options_.seed);
    recovers_ = std::jthread([this](const std::stop_token& stop) { recover(stop); });
    wakes_ = std::jthread([this](const std::stop_token& stop) { waker_->run(stop); });
  }
  if (dcgm_) polls_ = std::jthread([this](const std::stop_token& stop) { poll_dcgm(stop); });
}

std::string Live::why_not_leader() const {
  std::string why = why_not_leading();
  if (why.empty() && !places_restored_) why = "the places of gangs are not restored yet";
  return why;
}

void Live::recover(const std::stop_token& stop) {
  constexpr Nanoseconds kLookEvery = 20'000'000;
  while (!stop.stop_requested()) {
    recovery_->step();
    places_restored_ = recovery_->done();
    waiter_.wait(kLookEvery, stop);
  }
}

void Live::poll_dcgm(const std::stop_token& stop) {
  // What is told of pods that are not known yet would be lost until the next time.
  while (!stop.stop_requested() && !waiting_for().empty()) waiter_.wait(kSecond, stop);
  while (!stop.stop_requested()) {
    const auto samples = dcgm_->ask(stop);
    if (stop.stop_requested()) return;
    {
      const std::lock_guard lock(*mutex_);
      feed_.take_samples(samples);
    }
    waiter_.wait(DcgmPoll::kEvery, stop);
  }
}

std::string Live::waiting_for() const {
  return cluster_ ? cluster_->waiting_for() : "the API server has not been asked yet";
}

std::vector<std::string> Live::new_notes() {
  const std::vector<RefusedSlot> refused = recovery_ ? recovery_->take_refused() : std::vector<RefusedSlot>();
  const std::lock_guard lock(*mutex_);
  for (const RefusedSlot& slot : refused) {
    feed_.note("bound pods whose slot in their gang is not believed: " + slot.why, slot.pod);
  }
  return feed_.take_news();
}

std::vector<WatchFigures> Live::watch_figures() const {
  std::vector<WatchFigures> figures;
  for (const LiveCluster::Watched& watched : watches()) {
    const kube::ReflectorStatus& status = watched.status;
    if (status.absent) continue;
    figures.push_back({watched.name, clock_.now() - status.heard_at, status.events, status.lists, troubles(status)});
  }
  return figures;
}

std::vector<std::string> Live::new_troubles() {
  std::vector<std::string> all;
  for (const LiveCluster::Watched& watched : watches()) {
    const std::uint64_t count = troubles(watched.status);
    if (std::exchange(troubles_told_[watched.name], count) != count) {
      all.push_back(watched.name + ": " + watched.status.last_error);
    }
  }
  return all;
}

void Live::stop() {
  stop_binding();
  elects_.request_stop();
  polls_.request_stop();
  wakes_.request_stop();
  evicts_.request_stop();
  recovers_.request_stop();
  if (recovers_.joinable()) recovers_.join();
  if (wakes_.joinable()) wakes_.join();
  if (evicts_.joinable()) evicts_.join();
  if (elects_.joinable()) elects_.join();
  if (polls_.joinable()) polls_.join();
  if (cluster_) cluster_->stop();
}

}  // namespace mortise::extender
