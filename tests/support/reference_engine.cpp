#include "tests/support/reference_engine.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <tuple>
#include <utility>

#include "scheduler/base/rng.h"

namespace mortise::reference {
namespace {

using placement::PodRequest;
using placement::Reason;

bool is_share(const PodRequest& pod) {
  return pod.gpus > 0 && pod.gpu_milli < kWholeGpu;
}
MilliGpu asked_milli(const PodRequest& pod) {
  return pod.gpus > 0 ? pod.gpus * pod.gpu_milli : 0;
}

int devices_with(const Left& left, MilliGpu milli) {
  return static_cast<int>(
      std::count_if(left.devices.begin(), left.devices.end(), [&](MilliGpu device) { return device >= milli; }));
}

std::vector<int> whole_devices(const Left& left, int count) {
  std::vector<int> devices;
  for (int i = 0; i < std::ssize(left.devices) && std::ssize(devices) < count; ++i) {
    if (left.devices[static_cast<std::size_t>(i)] == kWholeGpu) devices.push_back(i);
  }
  return devices;
}

Left after_placing(Left left, const PodRequest& pod, const std::vector<int>& devices) {
  left.cpu -= pod.cpu;
  left.memory -= pod.memory;
  left.pods -= 1;
  for (const int device : devices) left.devices[static_cast<std::size_t>(device)] -= pod.gpu_milli;
  return left;
}

// The published programs measure nodes against one of 128 cores and 8 GPUs, whatever the cluster has.
constexpr double kCpuScale = 128000;
constexpr double kGpuScale = 8000;

std::int64_t best_fit_raw(const Left& left, const PodRequest& pod) {
  const auto cpu = static_cast<double>(left.cpu - pod.cpu);
  const auto gpu = static_cast<double>(left.milli() - asked_milli(pod));
  return static_cast<std::int64_t>(100 * (1 - (0.5 * cpu / kCpuScale + 0.5 * gpu / kGpuScale)));
}

std::int64_t dot_product(const Left& left, const PodRequest& pod) {
  const double cpu = (static_cast<double>(left.cpu) / kCpuScale) * (static_cast<double>(pod.cpu) / kCpuScale);
  const double gpu =
      (static_cast<double>(left.milli()) / kGpuScale) * (static_cast<double>(asked_milli(pod)) / kGpuScale);
  return static_cast<std::int64_t>(100 * (1 - (cpu + gpu) / 2));
}

// A pod's tag: 0 for a share, else how many whole GPUs.
std::int32_t tag(const PodRequest& pod) {
  return is_share(pod) ? 0 : pod.gpus;
}

std::int64_t gpu_clustering(const Node& node, const Left& left, const PodRequest& pod) {
  if (pod.gpus == 0) return 0;
  const std::int64_t fullness = 25 * (8000 - left.milli()) / 8000;
  bool same = false;
  bool other = false;
  for (const HeldPod& held : node.pods) {
    if (held.ask.gpus == 0) continue;
    (tag(held.ask) == tag(pod) ? same : other) = true;
  }
  if (same) return fullness + (other ? 50 : 75);
  return fullness + (other ? 0 : 25);
}

std::int64_t gpu_packing(const Left& left, const PodRequest& pod) {
  if (pod.gpus == 0) return 0;
  const auto count = static_cast<std::int64_t>(left.devices.size());
  if (devices_with(left, kWholeGpu) == count) return std::max<std::int64_t>(33 - count, count);
  std::vector<MilliGpu> ascending = left.devices;
  std::stable_sort(ascending.begin(), ascending.end());
  std::int64_t taken = 0;
  std::int64_t whole = 0;
  std::int64_t hundredths = 0;
  for (const MilliGpu device : ascending) {
    if (device < pod.gpu_milli || taken == pod.gpus) continue;
    ++taken;
    if (device == kWholeGpu) ++whole;
    hundredths += device / 10;
  }
  if (whole > 0) return std::max<std::int64_t>(50 - whole, 33);
  return std::max<std::int64_t>(100 - hundredths / 10, 50);
}

// The published range is 0..100. On machines beyond the published sizes raw scores may be further apart than that, and
// the division would merge them, depending on which other nodes are there; their order is kept instead.
void stretch_over_feasible(std::vector<Verdict>& verdicts) {
  std::optional<std::int64_t> low;
  std::optional<std::int64_t> high;
  for (const Verdict& v : verdicts) {
    if (v.reason != Reason::kNone) continue;
    low = std::min(low.value_or(v.score), v.score);
    high = std::max(high.value_or(v.score), v.score);
  }
  if (!low || *high - *low > 100) return;
  for (Verdict& v : verdicts) {
    if (v.reason == Reason::kNone) v.score = *high == *low ? 0 : (v.score - *low) * 100 / (*high - *low);
  }
}

bool parse_fgd_option(std::string_view option, PolicyRules& rules) {
  if (option == "tie=rank") {
    rules.tie = Tie::kRank;
  } else if (option == "tie=random") {
    rules.tie = Tie::kRandom;
  } else if (option == "tie=best-fit") {
    rules.tie = Tie::kBestFit;
  } else if (option.starts_with("step=")) {
    const std::string_view number = option.substr(5);
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), rules.step);
    return error == std::errc{} && end == number.data() + number.size() && rules.step > 0;
  } else {
    return false;
  }
  return true;
}

}  // namespace

Left left_on(const Node& node) {
  Left left{node.spec.cpu, node.spec.memory, node.spec.pods, {}};
  left.devices.assign(static_cast<std::size_t>(node.spec.gpus), kWholeGpu);
  for (const HeldPod& held : node.pods) left = after_placing(std::move(left), held.ask, held.devices);
  return left;
}

Reason why_not(const Node& node, const PodRequest& pod) {
  const placement::NodeSpec& spec = node.spec;
  if (!spec.schedulable) return Reason::kCordoned;
  if (pod.gpus > 0) {
    if (spec.gpus == 0) return Reason::kNoGpu;
    if (pod.gpus > spec.gpus) return Reason::kTooFewGpus;
    const bool any = pod.models.empty();
    if (!any && std::find(pod.models.begin(), pod.models.end(), spec.model) == pod.models.end()) {
      return Reason::kGpuModel;
    }
  }
  if (pod.cpu > spec.cpu || pod.memory > spec.memory || spec.pods < 1) return Reason::kNodeTooSmall;
  const Left left = left_on(node);
  if (pod.gpus > 0 && devices_with(left, pod.gpu_milli) < pod.gpus) return Reason::kInsufficientGpu;
  if (pod.cpu > left.cpu) return Reason::kInsufficientCpu;
  if (pod.memory > left.memory) return Reason::kInsufficientMemory;
  if (left.pods < 1) return Reason::kTooManyPods;
  return Reason::kNone;
}

bool can_hold(const Node& node, const PodRequest& pod, const std::vector<int>& devices) {
  const Left left = left_on(node);
  if (std::ssize(devices) != pod.gpus) return false;
  for (const int device : devices) {
    if (device >= std::ssize(left.devices)) return false;
    if (left.devices[static_cast<std::size_t>(device)] < pod.gpu_milli) return false;
  }
  return pod.cpu <= left.cpu && pod.memory <= left.memory && left.pods >= 1;
}

std::optional<PolicyRules> parse_rules(std::string_view spelling) {
  static constexpr std::pair<std::string_view, Rule> kNames[] = {{"random", Rule::kRandom},
                                                                 {"first-fit", Rule::kFirstFit},
                                                                 {"best-fit", Rule::kBestFit},
                                                                 {"dot-product", Rule::kDotProduct},
                                                                 {"gpu-packing", Rule::kGpuPacking},
                                                                 {"gpu-clustering", Rule::kGpuClustering},
                                                                 {"fgd", Rule::kFgd}};
  const std::string_view name = spelling.substr(0, spelling.find(':'));
  PolicyRules rules;
  const auto* found =
      std::find_if(std::begin(kNames), std::end(kNames), [&](const auto& n) { return n.first == name; });
  if (found == std::end(kNames)) return std::nullopt;
  rules.rule = found->second;
  if (rules.rule == Rule::kRandom) rules.tie = Tie::kRandom;
  spelling.remove_prefix(name.size());
  while (!spelling.empty()) {
    spelling.remove_prefix(1);
    const std::string_view option = spelling.substr(0, spelling.find(':'));
    if (rules.rule != Rule::kFgd || !parse_fgd_option(option, rules)) return std::nullopt;
    spelling.remove_prefix(option.size());
  }
  return rules;
}

Engine::Engine(PolicyRules rules, std::vector<Typical> typical, std::uint64_t seed)
    : rules_(rules), typical_(std::move(typical)), seed_(seed) {}

std::vector<Verdict> Engine::judge(std::span<const Node> nodes, const PodRequest& pod) const {
  std::vector<Verdict> verdicts;
  for (const Node& node : nodes) {
    Verdict verdict{why_not(node, pod), 0, 0};
    if (verdict.reason == Reason::kNone) {
      verdict.score = score(node, pod);
      if (rules_.tie == Tie::kBestFit) verdict.tie = best_fit_raw(left_on(node), pod);
    }
    verdicts.push_back(verdict);
  }
  if (rules_.rule == Rule::kBestFit) stretch_over_feasible(verdicts);
  return verdicts;
}

std::optional<Choice> Engine::choose(std::span<const Node> nodes, const PodRequest& pod) const {
  const std::vector<Verdict> verdicts = judge(nodes, pod);
  // Smaller is better in each place, so the larger scores are turned round.
  const auto order = [&](std::size_t i) {
    return std::make_tuple(-verdicts[i].score, -verdicts[i].tie, tie_key(nodes[i], pod), nodes[i].rank, i);
  };
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (verdicts[i].reason == Reason::kNone && (!best || order(i) < order(*best))) best = i;
  }
  if (!best) return std::nullopt;
  if (pod.gpus == 0) return Choice{*best, {}};
  if (is_share(pod)) return Choice{*best, {share_device(nodes[*best], pod)}};
  return Choice{*best, whole_devices(left_on(nodes[*best]), pod.gpus)};
}

double Engine::fragmentation_of(const Node& node) const {
  return fragmentation(left_on(node), node.spec.model, typical_);
}

double Engine::fragmentation_of(std::span<const Node> nodes) const {
  double sum = 0;
  for (const Node& node : nodes) sum += fragmentation_of(node);
  return sum;
}

std::int64_t Engine::score(const Node& node, const PodRequest& pod) const {
  const Left left = left_on(node);
  switch (rules_.rule) {
    case Rule::kRandom:
    case Rule::kFirstFit:
      return 0;
    case Rule::kBestFit:
      return best_fit_raw(left, pod);
    case Rule::kDotProduct:
      return dot_product(left, pod);
    case Rule::kGpuPacking:
      return gpu_packing(left, pod);
    case Rule::kGpuClustering:
      return gpu_clustering(node, left, pod);
    case Rule::kFgd:
      return gradient(node, pod).points;
  }
  return 0;
}

Engine::Gradient Engine::gradient(const Node& node, const PodRequest& pod) const {
  const Left left = left_on(node);
  const double before = fragmentation_of(node);
  if (!is_share(pod)) {
    const Left after = after_placing(left, pod, whole_devices(left, pod.gpus));
    return {gradient_points(before, after, node), -1};
  }
  Gradient best;
  for (int device = 0; device < node.spec.gpus; ++device) {
    if (left.devices[static_cast<std::size_t>(device)] < pod.gpu_milli) continue;
    const std::int64_t points = gradient_points(before, after_placing(left, pod, {device}), node);
    if (best.device < 0 || points > best.points) best = {points, device};
  }
  return best;
}

std::int64_t Engine::gradient_points(double before, const Left& after, const Node& node) const {
  const double drop = before - fragmentation(after, node.spec.model, typical_);
  if (rules_.step > 0) return static_cast<std::int64_t>(std::floor(drop / static_cast<double>(rules_.step)));
  return static_cast<std::int64_t>(100 / (1 + std::exp(-drop / 1000)));
}

int Engine::share_device(const Node& node, const PodRequest& pod) const {
  if (rules_.rule == Rule::kFgd) return gradient(node, pod).device;
  const Left left = left_on(node);
  std::vector<int> enough;
  for (int device = 0; device < node.spec.gpus; ++device) {
    if (left.devices[static_cast<std::size_t>(device)] >= pod.gpu_milli) enough.push_back(device);
  }
  if (rules_.rule == Rule::kRandom) {
    return enough[scale_draw(mix64(mix64(seed_ ^ hash_text(pod.name))), enough.size())];
  }
  return *std::min_element(enough.begin(), enough.end(), [&](int a, int b) {
    return left.devices[static_cast<std::size_t>(a)] < left.devices[static_cast<std::size_t>(b)];
  });
}

std::uint64_t Engine::tie_key(const Node& node, const PodRequest& pod) const {
  if (rules_.tie != Tie::kRandom) return node.rank;
  return mix64(mix64(seed_ ^ hash_text(pod.name)) ^ node.rank);
}

}  // namespace mortise::reference
