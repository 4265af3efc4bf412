#include "traces/synth.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "scheduler/base/rng.h"
#include "traces/limits.h"
#include "traces/profiles/profiles.h"

namespace mortise::traces {

namespace {

constexpr const SynthProfile* kProfiles[] = {&kOpenbLike};

constexpr std::int64_t kMyriad = 10'000;
/// Leaves room below kMaxSeconds for the wait and the duration of the last pod.
constexpr double kLongestSpan = static_cast<double>(kMaxSeconds) / 2;

template <class Row>
std::uint64_t total_weight(std::span<const Row> rows) {
  std::uint64_t total = 0;
  for (const Row& row : rows) total += row.weight;
  return total;
}

template <class Row>
const Row& draw(std::span<const Row> rows, Rng& rng) {
  std::uint64_t left = rng.below(total_weight(rows));
  for (const Row& row : rows) {
    if (left < row.weight) return row;
    left -= row.weight;
  }
  return rows.back();
}

/// In whole numbers, so that the bytes are the same on every machine.
std::int64_t draw_seconds(std::span<const Quantile> points, Rng& rng) {
  constexpr std::int64_t kScale = 1 << 16;
  const auto at = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(kMyriad * kScale)));
  std::size_t upper = 1;
  while (upper + 1 < points.size() && points[upper].myriadth * kScale <= at) ++upper;
  const Quantile& from = points[upper - 1];
  const Quantile& to = points[upper];
  const std::int64_t width = (to.myriadth - from.myriadth) * kScale;
  return from.seconds + (to.seconds - from.seconds) * (at - from.myriadth * kScale) / width;
}

/// "pod-0007": the numbers have equal width, so names sort as numbers do.
std::string numbered(std::string_view prefix, std::size_t number, std::size_t count) {
  constexpr std::size_t kLeastDigits = 4;
  const std::size_t width = std::max(kLeastDigits, std::to_string(count > 0 ? count - 1 : 0).size());
  const std::string digits = std::to_string(number);
  return std::string(prefix) + "-" + std::string(width - digits.size(), '0') + digits;
}

Rng seeded(std::string_view purpose, std::uint64_t seed) {
  return Rng(mix64(seed) ^ hash_text(purpose));
}

/// How many of `count` each shape gets, by largest remainder; ties go to the earlier row.
std::vector<std::size_t> apportion(std::span<const NodeShape> shapes, std::size_t count) {
  const std::size_t total = total_weight(shapes);
  std::vector<std::size_t> seats(shapes.size());
  std::vector<std::size_t> remainder(shapes.size());
  std::size_t given = 0;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    // Divided first, so that no product overflows.
    seats[i] = count / total * shapes[i].weight + count % total * shapes[i].weight / total;
    remainder[i] = count % total * shapes[i].weight % total;
    given += seats[i];
  }
  std::vector<std::size_t> by_remainder(shapes.size());
  std::iota(by_remainder.begin(), by_remainder.end(), std::size_t{0});
  std::stable_sort(by_remainder.begin(), by_remainder.end(),
                   [&](std::size_t a, std::size_t b) { return remainder[a] > remainder[b]; });
  for (std::size_t i = 0; given < count; ++i, ++given) ++seats[by_remainder[i]];
  return seats;
}

PodRecord draw_pod(const SynthProfile& profile, Rng& rng) {
  const PodGroup& group = draw(profile.pods, rng);
  const PodClass& kind = draw(group.classes, rng);
  PodRecord pod;
  pod.cpu = kind.cpu;
  pod.memory = kind.memory_mib * kMiB;
  pod.gpus = group.gpus;
  pod.gpu_milli = kind.gpu_milli;
  pod.qos = draw(group.qos, rng).label;
  if (rng.below(group.never_started + total_weight(group.ended)) < group.never_started) {
    pod.status = profile.unstarted_status;
    pod.duration = draw_seconds(profile.unstarted_lives, rng) * kSecond;
  } else {
    pod.status = draw(group.ended, rng).label;
    pod.wait = draw_seconds(profile.waits, rng) * kSecond;
    pod.duration = draw_seconds(group.durations, rng) * kSecond;
  }
  return pod;
}

/// The seconds in which `pods` are the wanted load.
double span_for_load(const std::vector<PodRecord>& pods, MilliGpu gpu_capacity, double load) {
  std::int64_t milli_seconds = 0;  // thousandths of a GPU, times seconds
  for (const PodRecord& pod : pods) milli_seconds += pod.gpus * pod.gpu_milli * (*pod.duration / kSecond);
  return static_cast<double>(milli_seconds) / (load * static_cast<double>(gpu_capacity));
}

}  // namespace

std::span<const SynthProfile* const> synth_profiles() {
  return kProfiles;
}

Result<const SynthProfile*> find_profile(std::string_view name) {
  std::string known;
  for (const SynthProfile* profile : synth_profiles()) {
    if (profile->name == name) return profile;
    known.append(known.empty() ? "" : ", ").append(profile->name);
  }
  return Error{"unknown profile '" + std::string(name) + "'; known: " + known};
}

std::vector<NodeRecord> synth_nodes(const SynthProfile& profile, std::size_t count, std::uint64_t seed) {
  const std::vector<std::size_t> seats = apportion(profile.nodes, count);
  std::vector<NodeRecord> nodes;
  nodes.reserve(count);
  for (std::size_t i = 0; i < seats.size(); ++i) {
    const NodeShape& shape = profile.nodes[i];
    const NodeRecord node{{}, shape.cpu, shape.memory_mib * kMiB, shape.gpus, std::string(shape.model)};
    nodes.insert(nodes.end(), seats[i], node);
  }
  Rng rng = seeded("nodes", seed);
  rng.shuffle(nodes);
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i].name = numbered("node", i, count);
  return nodes;
}

Result<Trace> synth_pods(const SynthProfile& profile, std::size_t count, MilliGpu gpu_capacity, double load,
                         std::uint64_t seed) {
  constexpr double kMostLoad = 100;
  if (count == 0 || count > kMaxSynthPods) {
    return Error{"count is " + std::to_string(count) + "; allowed: 1 to " + std::to_string(kMaxSynthPods)};
  }
  if (!(load > 0 && load <= kMostLoad)) {
    return Error{"load is " + std::to_string(load) + "; allowed: above 0, at most 100 (1 is all GPUs of the cluster)"};
  }
  if (gpu_capacity <= 0) return Error{"the cluster has no GPUs, so no load can be set; allowed: a cluster with GPUs"};
  Rng rng = seeded("pods", seed);
  Trace trace;
  trace.name = profile.name;
  trace.pods.reserve(count);
  for (std::size_t i = 0; i < count; ++i) trace.pods.push_back(draw_pod(profile, rng));

  const double span = span_for_load(trace.pods, gpu_capacity, load);
  if (span > kLongestSpan) {
    return Error{"load " + std::to_string(load) +
                 " spreads the pods over more than 63 years; allowed: a higher load, "
                 "fewer pods or a larger cluster"};
  }
  std::vector<Nanoseconds> submits(count);
  const auto seconds = static_cast<std::uint64_t>(span) + 1;
  for (Nanoseconds& submit : submits) submit = static_cast<Nanoseconds>(rng.below(seconds)) * kSecond;
  std::sort(submits.begin(), submits.end());
  for (std::size_t i = 0; i < count; ++i) {
    trace.pods[i].submit = submits[i];
    trace.pods[i].name = numbered("pod", i, count);
  }
  return trace;
}

Result<Trace> typical_sample() {
  // Enough draws that the share of each class is settled; the published list has about as many.
  constexpr std::size_t kPods = 8000;
  constexpr std::uint64_t kSeed = 1;
  const auto profile = find_profile("openb");
  if (!profile.ok()) return profile.error();
  // Capacity and load decide only when pods arrive, which plays no part here.
  return synth_pods(**profile, kPods, 1000 * kWholeGpu, 1.0, kSeed);
}

}  // namespace mortise::traces
