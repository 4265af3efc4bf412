#pragma once

#include <mutex>
#include <string>

#include "scheduler/base/clock.h"
#include "scheduler/extender/binder.h"
#include "scheduler/extender/handlers.h"
#include "scheduler/extender/log.h"
#include "scheduler/extender/metrics.h"
#include "scheduler/extender/plan_store.h"
#include "scheduler/placement/fragmentation.h"

namespace mortise::extender {

struct Reply {
  int status = 200;
  std::string body;
};

/// From the bytes of a request to the bytes of its answer. Thread-safe: one mutex guards the handlers, the engine and
/// the cluster state below them; requests are read and answers written outside of it.
class Service {
 public:
  /// All must outlive the service and be touched by nothing else while it serves.
  /// `binder` may be null: then a bind is done once it is booked. `log` may be null, too.
  Service(Handlers& handlers, const placement::ClusterState& cluster, placement::FragmentationMeter& fragmentation,
          Metrics& metrics, const Clock& clock, Binder* binder = nullptr, Log* log = nullptr)
      : handlers_(handlers),
        cluster_(cluster),
        fragmentation_(fragmentation),
        metrics_(metrics),
        clock_(clock),
        binder_(binder),
        log_(log) {}

  /// Bindings of members of gangs are sent when the plan of their gang is stored. It must outlive the service.
  void store_plans(PlanWriter& plans) { plans_ = &plans; }

  /// Guards the handlers and all below them; for others who change the cluster.
  std::mutex& mutex() { return mutex_; }

  /// Handlers::tick.
  void tick() {
    const std::lock_guard lock(mutex_);
    handlers_.tick();
  }

  Reply filter(std::string body);
  Reply prioritize(std::string body);
  Reply bind(std::string body);
  Reply preempt(std::string body);

  /// The answer to a request that never reaches the handlers (too large, not allowed here).
  Reply refuse(Verb verb, const std::string& why);

  std::string metrics_text();

 private:
  BindResult send_binding(const BindingArgs& args, const Handlers::BindStart& start);
  std::string bind_and_tell(const BindingArgs& args, Handlers::BindStart& start);
  void log_filter(const PodQuestion& question, const FilterAnswer& answer, Nanoseconds took);
  void log_bind(const BindingArgs& args, const Handlers::BindStart& start, const std::string& error, Nanoseconds took);
  void log_preempt(const PreemptionQuestion& question, const std::vector<NodeVictims>& nodes, Nanoseconds took);
  Reply finish(Verb verb, Nanoseconds start, bool ok, Reply reply);

  Handlers& handlers_;
  const placement::ClusterState& cluster_;
  placement::FragmentationMeter& fragmentation_;
  Metrics& metrics_;
  const Clock& clock_;
  Binder* binder_;
  PlanWriter* plans_ = nullptr;
  Log* log_;
  std::mutex mutex_;
};

}  // namespace mortise::extender
