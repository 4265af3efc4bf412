#include "scheduler/extender/live.h"

#include <algorithm>
#include <utility>

namespace mortise::extender {

Live::Live(const LiveOptions& options, placement::ClusterState& cluster, Bookings& bookings, const Clock& clock)
    : options_(options),
      clock_(clock),
      catalogue_(options.catalogue),
      feed_(cluster, bookings, catalogue_, options.seed, options.epoch) {}

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
  live->binder_.emplace(*live->client_, live->waiter_, live->stop_.get_token());
  return live;
}

Handlers::Waiting Live::waiting() {
  return [this](std::string_view uid) { return feed_.waiting(uid); };
}

void Live::start(std::mutex& mutex) {
  mutex_ = &mutex;
  cluster_.emplace(*client_, feed_, mutex, clock_, waiter_, options_.seed);
}

std::string Live::waiting_for() const {
  return cluster_ ? cluster_->waiting_for() : "the API server has not been asked yet";
}

std::vector<std::string> Live::new_notes() {
  const std::lock_guard lock(*mutex_);
  std::vector<std::string> all = feed_.notes();
  const std::size_t told = std::exchange(notes_told_, all.size());
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(told, all.size())));
  return all;
}

void Live::stop() {
  stop_.request_stop();
  if (cluster_) cluster_->stop();
}

}  // namespace mortise::extender
