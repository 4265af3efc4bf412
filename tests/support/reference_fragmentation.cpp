#include "tests/support/reference_fragmentation.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>

namespace mortise::reference {
namespace {

using placement::PodClass;

bool same_class(const PodClass& a, const PodClass& b) {
  return std::tie(a.cpu, a.gpu_milli, a.gpus, a.gpu_spec) == std::tie(b.cpu, b.gpu_milli, b.gpus, b.gpu_spec);
}

bool larger_class(const PodClass& a, const PodClass& b) {
  return std::tie(a.cpu, a.gpu_milli, a.gpus, a.gpu_spec) > std::tie(b.cpu, b.gpu_milli, b.gpus, b.gpu_spec);
}

// Kubernetes counts a pod that asks for no CPU as this much when it compares pods.
constexpr MilliCpu kCpuOfNoRequest = 100;

struct Counted {
  PodClass pod;
  std::int64_t count = 0;
};

// The names of the published measure; kQ3 and kXl are what a class could use or would leave alone.
enum Part : std::size_t { kQ1LackBoth, kQ2LackGpu, kQ3Satisfied, kQ4LackCpu, kXlSatisfied, kXrLackCpu, kNoAccess };
using Parts = std::array<double, 7>;

bool may_use(const PodClass& pod, const std::string& model) {
  return pod.models.empty() || std::find(pod.models.begin(), pod.models.end(), model) != pod.models.end();
}

void add_class(const Typical& typical, const Left& left, const std::string& model, Parts& parts) {
  const PodClass& pod = typical.pod;
  const double weight = typical.weight;
  const MilliGpu all = left.milli();
  const bool enough_cpu = left.cpu >= pod.cpu;
  if (pod.gpus == 0) {
    parts[enough_cpu ? kXlSatisfied : kXrLackCpu] += weight * static_cast<double>(all);
    return;
  }
  if (!may_use(pod, model)) {
    parts[kNoAccess] += weight * static_cast<double>(all);
    return;
  }
  std::int32_t fitting = 0;
  MilliGpu too_small = 0;
  for (const MilliGpu device : left.devices) {
    if (device >= pod.gpu_milli) {
      ++fitting;
    } else {
      too_small += device;
    }
  }
  const bool enough_gpu = fitting >= pod.gpus;
  if (enough_gpu && enough_cpu) {
    parts[kQ2LackGpu] += weight * static_cast<double>(too_small);
    parts[kQ3Satisfied] += weight * static_cast<double>(all - too_small);
  } else if (enough_gpu) {
    parts[kQ4LackCpu] += weight * static_cast<double>(all);
  } else if (enough_cpu) {
    parts[kQ2LackGpu] += weight * static_cast<double>(all);
  } else {
    parts[kQ1LackBoth] += weight * static_cast<double>(all);
  }
}

}  // namespace

MilliGpu Left::milli() const {
  return std::accumulate(devices.begin(), devices.end(), MilliGpu{0});
}

std::vector<Typical> typical_classes(std::span<const PodClass> pods) {
  std::vector<Counted> counted;
  for (PodClass pod : pods) {
    if (pod.cpu == 0) pod.cpu = kCpuOfNoRequest;
    auto found = std::find_if(counted.begin(), counted.end(), [&](const Counted& c) { return same_class(c.pod, pod); });
    if (found == counted.end()) found = counted.insert(found, {pod, 0});
    ++found->count;
  }
  std::sort(counted.begin(), counted.end(), [](const Counted& a, const Counted& b) {
    return a.count != b.count ? a.count > b.count : larger_class(a.pod, b.pod);
  });

  const auto all = static_cast<std::int64_t>(pods.size());
  std::int64_t kept = 0;
  std::vector<Counted> chosen;
  for (const Counted& c : counted) {
    if (kept * 100 >= all * 95) break;
    chosen.push_back(c);
    kept += c.count;
  }

  // count/kept would be the same number on paper, but its last bit differs from what the study computed.
  std::vector<Typical> typical;
  const double kept_share = static_cast<double>(kept) / static_cast<double>(all);
  for (const Counted& c : chosen) {
    typical.push_back({c.pod, static_cast<double>(c.count) / static_cast<double>(all) / kept_share});
  }
  return typical;
}

double fragmentation(const Left& left, const std::string& model, std::span<const Typical> typical) {
  Parts parts{};
  for (const Typical& t : typical) add_class(t, left, model, parts);
  // This order of addition is part of the published measure: the last bit can decide a truncated score.
  double sum = 0;
  for (const Part part : {kQ1LackBoth, kQ2LackGpu, kQ4LackCpu, kXlSatisfied, kXrLackCpu, kNoAccess}) sum += parts[part];
  return sum;
}

}  // namespace mortise::reference
