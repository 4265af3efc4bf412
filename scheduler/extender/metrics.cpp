#include "scheduler/extender/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace mortise::extender {
namespace {

constexpr std::array<std::string_view, kVerbCount> kVerbs = {"filter", "prioritize", "bind", "preempt"};
constexpr std::array<std::string_view, 2> kSides = {"scheduler", "admin"};
constexpr std::array<std::string_view, 2> kShortages = {"connections", "verbs"};

/// From a warm answer about a few nodes to the scheduler's default timeout.
const prometheus::Histogram::BucketBoundaries kSeconds = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01,
                                                          0.025,  0.05,    0.1,    0.25,  0.5,    1,     5};

void raise(prometheus::Counter& counter, std::uint64_t to) {
  counter.Increment(std::max(0.0, static_cast<double>(to) - counter.Value()));
}

}  // namespace

struct Metrics::Impl {
  prometheus::Registry registry;
  std::array<prometheus::Counter*, kVerbCount> ok{};
  std::array<prometheus::Counter*, kVerbCount> failed{};
  std::array<prometheus::Histogram*, kVerbCount> seconds{};
  std::array<prometheus::Counter*, kOutcomeCount> outcomes{};
  std::array<prometheus::Gauge*, kGangPhaseCount> gangs{};
  prometheus::Counter* gang_plans = nullptr;
  prometheus::Counter* gang_refusals = nullptr;
  prometheus::Counter* gang_expired = nullptr;
  prometheus::Counter* gang_yielded = nullptr;
  prometheus::Counter* gang_restored = nullptr;
  prometheus::Counter* gang_not_kept = nullptr;
  std::array<prometheus::Counter*, kSlotFaultCount> slots_refused{};
  prometheus::Counter* plans_stored = nullptr;
  prometheus::Counter* plans_not_stored = nullptr;
  prometheus::Counter* woken = nullptr;
  prometheus::Counter* wakes_failed = nullptr;
  prometheus::Counter* preemptions = nullptr;
  prometheus::Counter* evicted = nullptr;
  prometheus::Counter* evictions_failed = nullptr;
  std::array<prometheus::Counter*, placement::kReasonCount> rejections{};
  prometheus::Counter* refused = nullptr;
  std::array<prometheus::Gauge*, kSides.size()> connections{};
  std::array<std::array<prometheus::Counter*, kShortages.size()>, kSides.size()> unavailable{};
  prometheus::Family<prometheus::Gauge>* certificate = nullptr;
  prometheus::Family<prometheus::Counter>* reload_errors = nullptr;
  std::array<prometheus::Counter*, kWitnesses.size()> observations{};
  std::array<prometheus::Counter*, kWitnesses.size()> mismatches{};
  prometheus::Counter* failed_queries = nullptr;
  prometheus::Gauge* nodes = nullptr;
  prometheus::Gauge* gpus = nullptr;
  prometheus::Gauge* gpus_used = nullptr;
  prometheus::Gauge* fragmentation = nullptr;
  prometheus::Gauge* fragmentation_ratio = nullptr;
  prometheus::Gauge* states = nullptr;
  prometheus::Gauge* cordoned = nullptr;
  prometheus::Gauge* blocked = nullptr;
  prometheus::Gauge* no_topology = nullptr;
  prometheus::Gauge* free_nodes = nullptr;
  prometheus::Gauge* reservations = nullptr;
  prometheus::Family<prometheus::Gauge>* watch_lag = nullptr;
  prometheus::Family<prometheus::Counter>* watch_events = nullptr;
  prometheus::Family<prometheus::Counter>* watch_lists = nullptr;
  prometheus::Family<prometheus::Counter>* watch_troubles = nullptr;
  std::array<prometheus::Gauge*, placement::kHeadroomSizes.size()> headroom{};

  prometheus::Family<prometheus::Counter>& counter(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }
  prometheus::Gauge* gauge(const char* name, const char* help) {
    return &prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add({});
  }
  void add_requests();
  void add_serving();
  void add_cluster();
  void add_decisions();
  void add_observations();
  void add_gangs();
  void add_watches();
};

// Every series exists from the start: a rate over a counter that appears with its first event misses that event.
void Metrics::Impl::add_requests() {
  auto& requests = counter("mortise_extender_requests_total", "Requests answered, by verb and outcome.");
  auto& latency = prometheus::BuildHistogram()
                      .Name("mortise_extender_request_seconds")
                      .Help("Time from the whole request read to the answer ready, by verb.")
                      .Register(registry);
  for (std::size_t verb = 0; verb < kVerbs.size(); ++verb) {
    const std::string name(kVerbs[verb]);
    ok[verb] = &requests.Add({{"verb", name}, {"outcome", "ok"}});
    failed[verb] = &requests.Add({{"verb", name}, {"outcome", "error"}});
    seconds[verb] = &latency.Add({{"verb", name}}, kSeconds);
  }
}

void Metrics::Impl::add_decisions() {
  auto& decisions = counter("mortise_extender_decisions_total", "Pods filtered, by what was decided.");
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    outcomes[i] = &decisions.Add({{"decision", std::string(outcome_name(static_cast<Outcome>(i)))}});
  }
  auto& by_reason = counter("mortise_extender_rejections_total", "Pods for which no node passed, by the main reason.");
  for (std::size_t i = 1; i < rejections.size(); ++i) {
    rejections[i] = &by_reason.Add({{"reason", std::string(reason_name(static_cast<placement::Reason>(i)))}});
  }
  refused = &counter("mortise_answers_refused_total",
                     "Answers given twice without the pod being bound, so that the node was set aside.")
                 .Add({});
}

void Metrics::Impl::add_serving() {
  auto& open = prometheus::BuildGauge()
                   .Name("mortise_http_connections")
                   .Help("Connections served now, by listener.")
                   .Register(registry);
  auto& unserved = counter("mortise_http_unavailable_total",
                           "Connections and requests answered 503, by listener and what there was too much of.");
  for (std::size_t side = 0; side < kSides.size(); ++side) {
    const std::string name(kSides[side]);
    connections[side] = &open.Add({{"listener", name}});
    for (std::size_t cause = 0; cause < kShortages.size(); ++cause) {
      unavailable[side][cause] = &unserved.Add({{"listener", name}, {"cause", std::string(kShortages[cause])}});
    }
  }
  certificate = &prometheus::BuildGauge()
                     .Name("mortise_tls_certificate_expiration_timestamp_seconds")
                     .Help("When the certificate of the scheduler's listener ends, in Unix time.")
                     .Register(registry);
  reload_errors = &counter("mortise_tls_reload_errors_total",
                           "Changed certificate, key or CA files that could not be used; the old ones stay in use.");
}

void Metrics::Impl::add_cluster() {
  nodes = gauge("mortise_cluster_nodes", "Nodes known.");
  gpus = gauge("mortise_cluster_gpus", "GPUs of the nodes known.");
  gpus_used = gauge("mortise_cluster_gpus_used", "GPUs held by pods, shares counted as parts.");
  fragmentation = gauge("mortise_cluster_fragmentation_gpus",
                        "GPUs free that a typical pod could not use (FGD measure, Weng et al. 2023).");
  fragmentation_ratio = gauge("mortise_cluster_fragmentation_ratio", "The same as a part of all GPUs, 0 to 1.");
  states = gauge("mortise_cluster_states", "Kinds of nodes that placement tells apart now.");
  cordoned = gauge("mortise_cluster_cordoned_nodes", "Nodes that are not schedulable.");
  blocked =
      gauge("mortise_cluster_blocked_nodes", "Nodes that take no GPU pods, because what their pods hold is not known.");
  no_topology =
      gauge("mortise_cluster_unknown_topology_nodes", "Nodes with GPUs whose inside or kubelet policy nobody tells.");
  free_nodes = gauge("mortise_cluster_free_nodes", "Nodes that take pods, and all of whose GPUs are free.");
  reservations =
      gauge("mortise_reservations", "Pods that hold a place since filter answered, and are not being bound yet.");
  auto& room = prometheus::BuildGauge()
                   .Name("mortise_cluster_headroom_pods")
                   .Help("Pods of so many whole GPUs that would fit now, one after another, each size on its own.")
                   .Register(registry);
  for (std::size_t i = 0; i < headroom.size(); ++i) {
    headroom[i] = &room.Add({{"gpus", std::to_string(placement::kHeadroomSizes[i])}});
  }
}

void Metrics::Impl::add_watches() {
  watch_lag =
      &prometheus::BuildGauge()
           .Name("mortise_watch_lag_seconds")
           .Help("Time since the API server last sent anything about this type; it does at least once a minute.")
           .Register(registry);
  watch_events = &counter("mortise_watch_events_total", "Objects added, modified or deleted, by type.");
  watch_lists = &counter("mortise_watch_lists_total", "Complete lists, by type: at the start and after a gap.");
  watch_troubles = &counter("mortise_watch_troubles_total",
                            "Failed calls, expired versions and gaps of lists and watches, by type.");
}

void Metrics::Impl::add_observations() {
  auto& seen = counter("mortise_observations_total",
                       "Observations of devices that told something new about what pods hold, by source.");
  auto& odd = counter("mortise_prediction_mismatch_total",
                      "Observations that contradicted what had been foreseen of a node's devices, by source.");
  for (std::size_t i = 0; i < kWitnesses.size(); ++i) {
    observations[i] = &seen.Add({{"source", std::string(kWitnesses[i])}});
    mismatches[i] = &odd.Add({{"source", std::string(kWitnesses[i])}});
  }
  failed_queries =
      &counter("mortise_dcgm_query_failures_total", "Questions for DCGM series without a useful answer.").Add({});
}

void Metrics::Impl::add_gangs() {
  auto& now = prometheus::BuildGauge().Name("mortise_gangs").Help("Gangs by what they do now.").Register(registry);
  for (std::size_t i = 0; i < gangs.size(); ++i) {
    gangs[i] = &now.Add({{"state", std::string(gang_phase_name(static_cast<GangPhase>(i)))}});
  }
  gang_plans = &counter("mortise_gang_plans_total", "Times that a gang, or what it lacked, got its places.").Add({});
  gang_refusals = &counter("mortise_gang_refusals_total", "Searches for places that found none.").Add({});
  auto& back = counter("mortise_gang_places_given_back_total", "Times that a gang gave back places it had, by cause.");
  gang_expired = &back.Add({{"cause", "expired"}});
  gang_yielded = &back.Add({{"cause", "priority"}});
  gang_restored = &counter("mortise_gang_places_restored_total",
                           "Places of gangs' members that were reserved before the start, taken again.")
                       .Add({});
  auto& plans = counter("mortise_gang_plans_stored_total", "Plans of gangs written to a ConfigMap, by outcome.");
  plans_stored = &plans.Add({{"outcome", "ok"}});
  plans_not_stored = &plans.Add({{"outcome", "error"}});
  gang_not_kept = &plans.Add({{"outcome", "too_large"}});
  auto& slots = counter("mortise_gang_slots_refused_total", "Bound pods whose slot in their gang is not believed.");
  for (std::size_t i = 0; i < slots_refused.size(); ++i) {
    slots_refused[i] = &slots.Add({{"reason", std::string(slot_fault_name(static_cast<SlotFault>(i)))}});
  }
  auto& wakes = counter("mortise_gang_members_woken_total", "Annotations written to have kube-scheduler ask again.");
  woken = &wakes.Add({{"outcome", "ok"}});
  wakes_failed = &wakes.Add({{"outcome", "error"}});
  preemptions = &counter("mortise_gang_preemptions_total", "Times that it was decided who goes for a gang.").Add({});
  auto& evictions = counter("mortise_gang_evictions_total",
                            "Evictions of pods whose gang goes as a whole, on nodes that kube-scheduler leaves alone.");
  evicted = &evictions.Add({{"outcome", "ok"}});
  evictions_failed = &evictions.Add({{"outcome", "error"}});
}

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {
  impl_->add_requests();
  impl_->add_decisions();
  impl_->add_serving();
  impl_->add_cluster();
  impl_->add_observations();
  impl_->add_watches();
  impl_->add_gangs();
}
Metrics::~Metrics() = default;

void Metrics::count_request(Verb verb, bool ok, Nanoseconds took) {
  const auto index = static_cast<std::size_t>(verb);
  (ok ? impl_->ok : impl_->failed)[index]->Increment();
  impl_->seconds[index]->Observe(static_cast<double>(took) / static_cast<double>(kSecond));
}

void Metrics::count_filter(const FilterAnswer& answer) {
  impl_->outcomes[static_cast<std::size_t>(answer.outcome)]->Increment();
  if (answer.outcome == Outcome::kInvalid) {
    impl_->rejections[static_cast<std::size_t>(placement::Reason::kInvalidRequest)]->Increment();
  }
  if (answer.outcome == Outcome::kRejected) {
    impl_->rejections[static_cast<std::size_t>(answer.main_reason)]->Increment();
  }
  if (answer.refused) impl_->refused->Increment();
}

void Metrics::count_connections(ListenerSide side, int by) {
  impl_->connections[static_cast<std::size_t>(side)]->Increment(by);
}

void Metrics::count_unavailable(ListenerSide side, Shortage cause) {
  impl_->unavailable[static_cast<std::size_t>(side)][static_cast<std::size_t>(cause)]->Increment();
}

void Metrics::set_tls(bool reloaded, std::int64_t expires) {
  impl_->certificate->Add({}).Set(static_cast<double>(expires));
  impl_->reload_errors->Add({}).Increment(reloaded ? 0 : 1);
}

void Metrics::set_watches(const std::vector<WatchFigures>& watches) {
  for (const WatchFigures& watch : watches) {
    const prometheus::Labels labels = {{"resource", watch.resource}};
    impl_->watch_lag->Add(labels).Set(static_cast<double>(watch.silent) / static_cast<double>(kSecond));
    raise(impl_->watch_events->Add(labels), watch.events);
    raise(impl_->watch_lists->Add(labels), watch.lists);
    raise(impl_->watch_troubles->Add(labels), watch.troubles);
  }
}

void Metrics::set_woken(const std::pair<std::uint64_t, std::uint64_t>& woken) {
  raise(*impl_->woken, woken.first);
  raise(*impl_->wakes_failed, woken.second);
}

void Metrics::set_evicted(const std::pair<std::uint64_t, std::uint64_t>& evicted) {
  raise(*impl_->evicted, evicted.first);
  raise(*impl_->evictions_failed, evicted.second);
}

void Metrics::set_plans_stored(const std::pair<std::uint64_t, std::uint64_t>& stored) {
  raise(*impl_->plans_stored, stored.first);
  raise(*impl_->plans_not_stored, stored.second);
}

void Metrics::set_cluster(const placement::ClusterTotals& totals, double fragmentation, std::size_t reservations) {
  const auto in_gpus = [](double milli) { return milli / static_cast<double>(kWholeGpu); };
  impl_->nodes->Set(static_cast<double>(totals.nodes));
  impl_->gpus->Set(static_cast<double>(totals.gpus));
  impl_->gpus_used->Set(in_gpus(static_cast<double>(totals.gpu_used)));
  impl_->fragmentation->Set(in_gpus(fragmentation));
  impl_->reservations->Set(static_cast<double>(reservations));
}

void Metrics::set_figures(const ClusterFigures& figures) {
  impl_->fragmentation_ratio->Set(figures.fragmentation_ratio());
  impl_->states->Set(static_cast<double>(figures.states));
  for (std::size_t i = 0; i < figures.observed.size(); ++i) {
    raise(*impl_->observations[i], figures.observed[i].used);
    raise(*impl_->mismatches[i], figures.observed[i].mismatches);
  }
  raise(*impl_->failed_queries, figures.failed_queries);
  impl_->cordoned->Set(static_cast<double>(figures.cordoned));
  impl_->blocked->Set(static_cast<double>(figures.blocked));
  impl_->no_topology->Set(static_cast<double>(figures.no_topology));
  for (std::size_t i = 0; i < impl_->gangs.size(); ++i) impl_->gangs[i]->Set(static_cast<double>(figures.gangs[i]));
  raise(*impl_->gang_plans, figures.gang_life.plans);
  raise(*impl_->gang_refusals, figures.gang_life.refusals);
  raise(*impl_->gang_expired, figures.gang_life.expired);
  raise(*impl_->gang_yielded, figures.gang_life.yielded);
  raise(*impl_->preemptions, figures.gang_life.preemptions);
  raise(*impl_->gang_restored, figures.gang_life.restored);
  raise(*impl_->gang_not_kept, figures.gang_life.not_kept);
  for (std::size_t i = 0; i < kSlotFaultCount; ++i) {
    raise(*impl_->slots_refused[i], figures.gang_life.slots_refused[i]);
  }
  impl_->free_nodes->Set(static_cast<double>(figures.headroom.free_nodes));
  for (std::size_t i = 0; i < impl_->headroom.size(); ++i) {
    impl_->headroom[i]->Set(static_cast<double>(figures.headroom.pods[i]));
  }
}

std::string Metrics::text() const {
  return prometheus::TextSerializer().Serialize(impl_->registry.Collect());
}

}  // namespace mortise::extender
