#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "scheduler/base/clock.h"
#include "scheduler/kube/client/api_client.h"
#include "scheduler/kube/objects/gpu_samples.h"

namespace mortise::extender {

/// Asks a Prometheus server which pod the DCGM exporter sees on which GPU.
class DcgmPoll {
 public:
  static constexpr Nanoseconds kEvery = 30 * kSecond;

  /// `url` is what comes before /api/v1/query. Does not connect yet. `clock` must outlive it.
  static Result<std::unique_ptr<DcgmPoll>> make(const std::string& url, const Clock& clock);

  /// One question; the error is one line.
  Result<std::vector<kube::GpuSample>> ask(const std::stop_token& stop);

 private:
  explicit DcgmPoll(std::unique_ptr<kube::ApiClient> client) : client_(std::move(client)) {}

  std::unique_ptr<kube::ApiClient> client_;
};

}  // namespace mortise::extender
