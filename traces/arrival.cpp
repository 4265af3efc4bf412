#include "traces/arrival.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "scheduler/base/rng.h"

namespace mortise::traces {

namespace {

constexpr std::string_view kInflatePrefix = "inflate:";
constexpr std::string_view kOrderPrefix = "order:";
constexpr std::string_view kForms = "inflate:RATIO (0 < RATIO <= 1000), order:FILE (pod names, one a line)";
constexpr std::string_view kCloneMark = "-clone-";

/// Names arrivals in order, numbering those of a pod that came before.
class ArrivalNamer {
 public:
  explicit ArrivalNamer(const Trace& trace) : trace_(trace), seen_(trace.pods.size(), 0) {
    for (const PodRecord& pod : trace.pods) {
      if (pod.name.find(kCloneMark) != std::string::npos) taken_.insert(pod.name);
    }
  }

  Arrival next(std::uint32_t pod) {
    const std::string& name = trace_.pods[pod].name;
    std::uint32_t& count = seen_[pod];
    if (count++ == 0) return {pod, name};
    while (true) {
      std::string clone = name + std::string(kCloneMark) + std::to_string(count - 1);
      // A pod of the trace may itself be called so: its number is left out.
      if (!taken_.contains(clone)) return {pod, std::move(clone)};
      ++count;
    }
  }

 private:
  const Trace& trace_;
  std::vector<std::uint32_t> seen_;
  std::unordered_set<std::string> taken_;  ///< names of the trace that look like clones
};

MilliGpu demand(const PodRecord& pod) {
  return pod.gpus * pod.gpu_milli;
}

/// Appends draws with replacement from `by_name`, in the order of which every pod is equally likely.
Status tune_up(const Trace& trace, const std::vector<std::uint32_t>& by_name, MilliGpu total, double target, Rng& rng,
               std::vector<std::uint32_t>& order) {
  const auto is_gpu_pod = [](const PodRecord& pod) { return pod.gpu_milli > 0; };
  if (std::none_of(trace.pods.begin(), trace.pods.end(), is_gpu_pod)) {
    return Error{"trace '" + trace.name +
                 "' asks for no GPUs, so no number of its pods reaches a share of the "
                 "cluster's GPUs; allowed: a trace with GPU pods, or order:FILE"};
  }
  while (true) {
    const std::uint32_t pod = by_name[rng.below(by_name.size())];
    // The study compares the share of one GPU, not the pod's demand: the last pod may overshoot.
    if (static_cast<double>(total + trace.pods[pod].gpu_milli) > target) return ok_status();
    if (order.size() == kMaxArrivals) {
      return Error{"trace '" + trace.name + "' would need more than " + std::to_string(kMaxArrivals) +
                   " arrivals to reach the target; allowed: a smaller ratio"};
    }
    total += demand(trace.pods[pod]);
    order.push_back(pod);
  }
}

/// Removes uniformly random pods until the demand is within the target; the others keep their order.
void tune_down(const Trace& trace, MilliGpu total, double target, Rng& rng, std::vector<std::uint32_t>& order) {
  std::vector<std::uint32_t> leaving = order;
  rng.shuffle(leaving);
  std::vector<bool> removed(trace.pods.size(), false);
  for (const std::uint32_t pod : leaving) {
    if (static_cast<double>(total) <= target) break;
    removed[pod] = true;
    total -= demand(trace.pods[pod]);
  }
  std::erase_if(order, [&](std::uint32_t pod) { return removed[pod]; });
}

std::vector<Arrival> named(const Trace& trace, const std::vector<std::uint32_t>& order) {
  ArrivalNamer namer(trace);
  std::vector<Arrival> arrivals;
  arrivals.reserve(order.size());
  for (const std::uint32_t pod : order) arrivals.push_back(namer.next(pod));
  return arrivals;
}

Error bad_arrival(std::string_view text) {
  return Error{"arrival '" + std::string(text) + "' is not known; allowed: " + std::string(kForms)};
}

}  // namespace

Result<std::vector<Arrival>> inflate(const Trace& trace, double ratio, MilliGpu capacity, std::uint64_t seed) {
  if (!(ratio > 0 && ratio <= kMaxInflation)) {
    return Error{"inflation ratio " + std::to_string(ratio) + " is out of range; allowed: above 0, at most 1000"};
  }
  if (trace.pods.size() > kMaxArrivals) {
    return Error{"trace '" + trace.name + "' has " + std::to_string(trace.pods.size()) +
                 " pods; allowed for inflate: " + std::to_string(kMaxArrivals)};
  }
  Rng rng(seed);
  std::vector<std::uint32_t> by_name(trace.pods.size());
  std::iota(by_name.begin(), by_name.end(), 0U);
  // Sorted first, so that the arrivals do not depend on the order of the file.
  std::stable_sort(by_name.begin(), by_name.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return trace.pods[a].name < trace.pods[b].name; });
  std::vector<std::uint32_t> order = by_name;
  rng.shuffle(order);

  MilliGpu total = 0;
  for (const PodRecord& pod : trace.pods) total += demand(pod);
  const double target = ratio * static_cast<double>(capacity);
  if (static_cast<double>(total) < target) {
    if (const Status tuned = tune_up(trace, by_name, total, target, rng, order); !tuned) return tuned.error();
  } else {
    tune_down(trace, total, target, rng, order);
  }
  return named(trace, order);
}

Result<std::vector<Arrival>> read_order(const Trace& trace, std::istream& in, const std::string& file_name) {
  std::unordered_map<std::string_view, std::uint32_t> by_name;
  for (std::uint32_t pod = 0; pod < trace.pods.size(); ++pod) by_name.emplace(trace.pods[pod].name, pod);
  std::vector<std::uint32_t> order;
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    const std::string where = file_name + ":" + std::to_string(number) + ": ";
    const auto found = by_name.find(line);
    if (found == by_name.end()) {
      return Error{where + "no pod '" + line + "' in trace '" + trace.name +
                   "'; allowed: names of its pods, one a line"};
    }
    if (order.size() == kMaxArrivals) {
      return Error{where + "too many arrivals; allowed: " + std::to_string(kMaxArrivals)};
    }
    order.push_back(found->second);
  }
  if (in.bad()) return Error{file_name + ": cannot be read"};
  if (order.empty()) return Error{file_name + ": no pod names; allowed: one or more, one a line"};
  return named(trace, order);
}

std::string_view arrival_forms() {
  return kForms;
}

Result<ArrivalSpec> parse_arrival(std::string_view text) {
  if (text.starts_with(kOrderPrefix) && text.size() > kOrderPrefix.size()) {
    return ArrivalSpec(OrderFile{std::string(text.substr(kOrderPrefix.size()))});
  }
  if (text.starts_with(kInflatePrefix)) {
    const std::string_view figure = text.substr(kInflatePrefix.size());
    double ratio = 0;
    const auto [end, failure] =
        std::from_chars(figure.data(), figure.data() + figure.size(), ratio, std::chars_format::fixed);
    const bool whole = failure == std::errc{} && end == figure.data() + figure.size();
    if (whole && ratio > 0 && ratio <= kMaxInflation) return ArrivalSpec(Inflate{ratio});
  }
  return bad_arrival(text);
}

}  // namespace mortise::traces
