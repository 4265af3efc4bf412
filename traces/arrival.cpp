#include "traces/arrival.h"

#include <algorithm>
#include <charconv>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "scheduler/base/rng.h"

namespace mortise::traces {

namespace {

constexpr std::string_view kInflatePrefix = "inflate:";
constexpr std::string_view kOrderPrefix = "order:";
constexpr std::string_view kForms =
    "inflate:RATIO (0 < RATIO <= 1000), order:FILE (names of pods and gangs, one a line)";
constexpr std::string_view kCloneMark = "-clone-";

/// What arrives as one: a pod, or a gang. Known by its first pod.
class Units {
 public:
  explicit Units(const Trace& trace) : trace_(trace) {}

  bool starts(std::uint32_t pod) const {
    const auto& gang = trace_.pods[pod].gang;
    return !gang || trace_.gangs[*gang].first() == pod;
  }
  const std::string& name(std::uint32_t pod) const {
    const auto& gang = trace_.pods[pod].gang;
    return gang ? trace_.gangs[*gang].name : trace_.pods[pod].name;
  }
  std::span<const PodRecord> pods(std::uint32_t pod) const {
    const auto& gang = trace_.pods[pod].gang;
    return std::span(trace_.pods).subspan(pod, gang ? trace_.gangs[*gang].size() : 1);
  }
  MilliGpu demand(std::uint32_t pod) const {
    MilliGpu total = 0;
    for (const PodRecord& member : pods(pod)) total += member.gpus * member.gpu_milli;
    return total;
  }
  MilliGpu largest_share(std::uint32_t pod) const {
    MilliGpu largest = 0;
    for (const PodRecord& member : pods(pod)) largest = std::max(largest, member.gpu_milli);
    return largest;
  }
  std::vector<std::uint32_t> all() const {
    std::vector<std::uint32_t> units;
    units.reserve(trace_.pods.size());
    for (std::uint32_t pod = 0; pod < trace_.pods.size(); ++pod) {
      if (starts(pod)) units.push_back(pod);
    }
    return units;
  }

 private:
  const Trace& trace_;
};

/// Names arrivals in order, numbering those of a pod or gang that came before.
class ArrivalNamer {
 public:
  explicit ArrivalNamer(const Trace& trace) : units_(trace), seen_(trace.pods.size(), 0) {
    for (const PodRecord& pod : trace.pods) {
      if (pod.name.find(kCloneMark) != std::string::npos) taken_.insert(pod.name);
    }
    for (const GangRecord& gang : trace.gangs) {
      if (gang.name.find(kCloneMark) != std::string::npos) taken_.insert(gang.name);
    }
  }

  Arrival next(std::uint32_t unit) {
    std::uint32_t& count = seen_[unit];
    // A pod of the trace may itself be called so: its number is left out.
    while (count > 0 && is_taken(unit, count)) ++count;
    const std::uint32_t clone = count++;
    return {unit, clone_name(units_.name(unit), clone), clone};
  }

 private:
  bool is_taken(std::uint32_t unit, std::uint32_t clone) const {
    if (taken_.empty()) return false;
    const auto pods = units_.pods(unit);
    return taken_.contains(clone_name(units_.name(unit), clone)) ||
           std::any_of(pods.begin(), pods.end(),
                       [&](const PodRecord& pod) { return taken_.contains(clone_name(pod.name, clone)); });
  }

  Units units_;
  std::vector<std::uint32_t> seen_;
  std::unordered_set<std::string> taken_;  ///< names of the trace that look like clones
};

/// Appends draws with replacement from `by_name`, in the order of which every pod is equally likely.
Status tune_up(const Trace& trace, const std::vector<std::uint32_t>& by_name, MilliGpu total, double target, Rng& rng,
               std::vector<std::uint32_t>& order) {
  const auto is_gpu_pod = [](const PodRecord& pod) { return pod.gpu_milli > 0; };
  if (std::none_of(trace.pods.begin(), trace.pods.end(), is_gpu_pod)) {
    return Error{"trace '" + trace.name +
                 "' asks for no GPUs, so no number of its pods reaches a share of the "
                 "cluster's GPUs; allowed: a trace with GPU pods, or order:FILE"};
  }
  const Units units(trace);
  std::size_t arrived = trace.pods.size();
  while (true) {
    const std::uint32_t unit = by_name[rng.below(by_name.size())];
    // The study compares the share of one GPU, not the pod's demand: the last pod may overshoot.
    if (static_cast<double>(total + units.largest_share(unit)) > target) return ok_status();
    arrived += units.pods(unit).size();
    if (arrived > kMaxArrivals) {
      return Error{"trace '" + trace.name + "' would need more than " + std::to_string(kMaxArrivals) +
                   " arrivals to reach the target; allowed: a smaller ratio"};
    }
    total += units.demand(unit);
    order.push_back(unit);
  }
}

/// Removes uniformly random pods until the demand is within the target; the others keep their order.
void tune_down(const Trace& trace, MilliGpu total, double target, Rng& rng, std::vector<std::uint32_t>& order) {
  std::vector<std::uint32_t> leaving = order;
  rng.shuffle(leaving);
  const Units units(trace);
  std::vector<bool> removed(trace.pods.size(), false);
  for (const std::uint32_t unit : leaving) {
    if (static_cast<double>(total) <= target) break;
    removed[unit] = true;
    total -= units.demand(unit);
  }
  std::erase_if(order, [&](std::uint32_t unit) { return removed[unit]; });
}

std::vector<Arrival> named(const Trace& trace, const std::vector<std::uint32_t>& order) {
  ArrivalNamer namer(trace);
  std::vector<Arrival> arrivals;
  arrivals.reserve(order.size());
  for (const std::uint32_t unit : order) arrivals.push_back(namer.next(unit));
  return arrivals;
}

/// What is wrong with a name of an order file.
std::string not_in(const Trace& trace, const std::string& name) {
  for (const PodRecord& pod : trace.pods) {
    if (!pod.gang || pod.name != name) continue;
    const std::string& gang = trace.gangs[*pod.gang].name;
    return "pod '" + name + "' comes with its gang; allowed: '" + gang + "' for all its pods";
  }
  const std::string allowed = trace.gangs.empty() ? "names of its pods" : "names of its gangs and of pods in none";
  return "no pod '" + name + "' in trace '" + trace.name + "'; allowed: " + allowed + ", one a line";
}

Error bad_arrival(std::string_view text) {
  return Error{"arrival '" + std::string(text) + "' is not known; allowed: " + std::string(kForms)};
}

}  // namespace

std::string clone_name(const std::string& name, std::uint32_t n) {
  return n == 0 ? name : name + std::string(kCloneMark) + std::to_string(n);
}

Result<std::vector<Arrival>> inflate(const Trace& trace, double ratio, MilliGpu capacity, std::uint64_t seed) {
  if (!(ratio > 0 && ratio <= kMaxInflation)) {
    return Error{"inflation ratio " + std::to_string(ratio) + " is out of range; allowed: above 0, at most 1000"};
  }
  if (trace.pods.size() > kMaxArrivals) {
    return Error{"trace '" + trace.name + "' has " + std::to_string(trace.pods.size()) +
                 " pods; allowed for inflate: " + std::to_string(kMaxArrivals)};
  }
  Rng rng(seed);
  const Units units(trace);
  std::vector<std::uint32_t> by_name = units.all();
  // Sorted first, so that the arrivals do not depend on the order of the file.
  std::stable_sort(by_name.begin(), by_name.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return units.name(a) < units.name(b); });
  std::vector<std::uint32_t> order = by_name;
  rng.shuffle(order);

  MilliGpu total = 0;
  for (const std::uint32_t unit : by_name) total += units.demand(unit);
  const double target = ratio * static_cast<double>(capacity);
  if (static_cast<double>(total) < target) {
    if (const Status tuned = tune_up(trace, by_name, total, target, rng, order); !tuned) return tuned.error();
  } else {
    tune_down(trace, total, target, rng, order);
  }
  return named(trace, order);
}

Result<std::vector<Arrival>> read_order(const Trace& trace, std::istream& in, const std::string& file_name) {
  const Units units(trace);
  std::unordered_map<std::string_view, std::uint32_t> by_name;
  for (const std::uint32_t unit : units.all()) by_name.emplace(units.name(unit), unit);
  std::vector<std::uint32_t> order;
  std::size_t arrived = 0;
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    const std::string where = file_name + ":" + std::to_string(number) + ": ";
    const auto found = by_name.find(line);
    if (found == by_name.end()) return Error{where + not_in(trace, line)};
    arrived += units.pods(found->second).size();
    if (arrived > kMaxArrivals) {
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
