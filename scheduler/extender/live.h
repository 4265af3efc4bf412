#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "scheduler/base/clock.h"
#include "scheduler/extender/binder.h"
#include "scheduler/extender/dcgm_poll.h"
#include "scheduler/extender/evictor.h"
#include "scheduler/extender/gang_recovery.h"
#include "scheduler/extender/gang_waker.h"
#include "scheduler/extender/handlers.h"
#include "scheduler/extender/leadership.h"
#include "scheduler/extender/live_cluster.h"
#include "scheduler/extender/metrics.h"
#include "scheduler/extender/plan_store.h"
#include "scheduler/extender/state_feed.h"
#include "scheduler/kube/client/api_client.h"
#include "scheduler/kube/client/waiter.h"

namespace mortise::extender {

struct LiveOptions {
  std::string kubeconfig;  ///< file; empty: the service account of the pod we run in
  std::string context;     ///< of the file; empty: its current one
  std::string catalogue;   ///< folder of the machine catalogue; empty: the one that came with the program
  std::uint64_t seed = 1;
  std::string lease;           ///< NAMESPACE/NAME; empty: there are no other replicas
  std::string identity;        ///< of this replica
  std::string dcgm_query_url;  ///< of a Prometheus server; empty: none is asked
};

/// The parts that stand between an API server and the cluster state.
class Live {
 public:
  /// How long a decisive answer holds its place: kube-scheduler binds within seconds, unless volumes or other plugins
  /// make it wait; after this long the place is looked for again at bind.
  static constexpr Nanoseconds kReserveFor = 120 * kSecond;

  /// Reads where the API server is, without asking it anything. All must outlive it.
  static Result<std::unique_ptr<Live>> prepare(const LiveOptions& options, placement::ClusterState& cluster,
                                               Bookings& bookings, const Clock& clock);
  ~Live();

  Binder& binder() { return *binder_; }
  PlanWriter& plans() { return *plan_writer_; }
  Handlers::Waiting waiting();
  Handlers::Stamp stamp();

  /// Keeps these like the API server's objects, and wakes members. Before start(); all must outlive stop().
  void feed_gangs(Gangs& gangs, GangFeed& feed, placement::Domains& domains) {
    gangs.keep_plans();
    places_restored_ = false;
    gangs_ = &gangs;
    gang_feed_ = &feed;
    feed_.feed_gangs(gangs, feed, domains);
  }

  /// Tells these of pods that are being deleted or gone, and evicts what they say. Before start(); they must outlive
  /// stop().
  void carry_out(Evictions& evictions) {
    evictions_ = &evictions;
    feed_.feed_evictions(evictions);
  }

  /// Begins to watch; `mutex` guards the cluster from now on.
  void start(std::mutex& mutex);
  /// Why the state of the cluster is not known yet; empty: it is.
  std::string waiting_for() const;
  /// What objects could not be understood since the last call, one line each. Takes the mutex.
  std::vector<std::string> new_notes();
  /// What went wrong with the watches since the last call, one line each.
  std::vector<std::string> new_troubles();
  std::vector<WatchFigures> watch_figures() const;
  /// Members of gangs that were woken, and how often that failed.
  std::pair<std::uint64_t, std::uint64_t> members_woken() const {
    return waker_ ? std::pair(waker_->woken(), waker_->failed()) : std::pair<std::uint64_t, std::uint64_t>();
  }
  /// Pods that were evicted, and attempts that failed.
  std::pair<std::uint64_t, std::uint64_t> pods_evicted() const {
    return evictor_ ? std::pair(evictor_->evicted(), evictor_->failed()) : std::pair<std::uint64_t, std::uint64_t>();
  }
  /// What became of evictions since the last call.
  std::vector<Evictor::News> new_evictions() { return evictor_ ? evictor_->take_news() : std::vector<Evictor::News>(); }
  /// Plans of gangs that were stored, and how often that failed.
  std::pair<std::uint64_t, std::uint64_t> plans_stored() const {
    return {plan_writer_->written(), plan_writer_->failed()};
  }
  /// Why another replica answers, or may, or why this one does not yet; empty: it does. Any thread may ask.
  std::string why_not_leader() const;

  /// kube-scheduler has asked this replica a verb. Any thread may call it.
  void asked() {
    if (leadership_) leadership_->asked();
  }

  /// Ends Bindings on their way. Any thread may call it.
  void stop_binding() { stop_.request_stop(); }
  /// Ends that and everything else, and gives the lease back.
  void stop();

 private:
  std::vector<LiveCluster::Watched> watches() const {
    return cluster_ ? cluster_->status() : std::vector<LiveCluster::Watched>();
  }

  Live(const LiveOptions& options, placement::ClusterState& cluster, Bookings& bookings, const Clock& clock);
  std::string why_not_leading() const { return leadership_ ? leadership_->why_not() : std::string(); }
  void recover(const std::stop_token& stop);
  void poll_dcgm(const std::stop_token& stop);

  const LiveOptions options_;
  const Clock& clock_;
  std::stop_source stop_;
  std::unique_ptr<kube::ApiClient> client_;
  kube::SleepingWaiter waiter_;
  topology::LazyCatalogue catalogue_;
  StateFeed feed_;
  std::optional<ApiLeaseStore> lease_;
  std::optional<Leadership> leadership_;
  std::jthread elects_;
  std::optional<ApiBinder> binder_;
  std::optional<ApiPlanStore> plan_store_;
  std::optional<PlanWriter> plan_writer_;
  std::mutex* mutex_ = nullptr;
  std::map<std::string, std::uint64_t> troubles_told_;  // by what is watched
  std::uint64_t decisions_ = 0;                         // guarded by *mutex_
  std::optional<LiveCluster> cluster_;
  Gangs* gangs_ = nullptr;
  GangFeed* gang_feed_ = nullptr;
  std::optional<GangRecovery> recovery_;
  std::atomic<bool> places_restored_ = true;  // of gangs
  std::jthread recovers_;
  std::optional<GangWaker> waker_;
  std::jthread wakes_;
  Evictions* evictions_ = nullptr;
  std::optional<Evictor> evictor_;
  std::jthread evicts_;
  std::unique_ptr<DcgmPoll> dcgm_;
  std::jthread polls_;
};

}  // namespace mortise::extender
