#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "traces/arrival.h"
#include "traces/openb.h"

namespace mortise::traces {
namespace {

/// Text that a CSV field can hold, with what needs quoting in it.
rc::Gen<std::string> field_text() {
  return rc::gen::container<std::string>(rc::gen::elementOf(std::string("aZ09|,\" -.")));
}

rc::Gen<std::optional<Nanoseconds>> maybe_seconds() {
  return rc::gen::apply(
      [](bool there, std::int64_t seconds) {
        return there ? std::optional<Nanoseconds>(seconds * kSecond) : std::nullopt;
      },
      rc::gen::arbitrary<bool>(), rc::gen::inRange<std::int64_t>(0, 1'000'000));
}

/// Pods as a reader may give them, with distinct names.
Trace any_trace(bool with_text) {
  Trace trace{"t", {}};
  const auto count = *rc::gen::inRange<std::size_t>(1, 30);
  for (std::size_t i = 0; i < count; ++i) {
    PodRecord pod;
    pod.name = "p" + std::to_string(*rc::gen::inRange(0, 100)) + "-" + std::to_string(i);
    pod.cpu = *rc::gen::inRange<MilliCpu>(0, 200'000);
    pod.memory = *rc::gen::inRange<Bytes>(0, 1'000'000) * kMiB;
    pod.gpus = *rc::gen::element(0, 1, 1, 1, 2, 8);
    if (pod.gpus > 0) pod.gpu_milli = pod.gpus > 1 ? kWholeGpu : *rc::gen::inRange<MilliGpu>(1, 1001);
    if (with_text) {
      if (pod.gpus > 0) pod.gpu_spec = *field_text();
      pod.status = *field_text();
      pod.qos = *field_text();
      pod.submit = *rc::gen::inRange<std::int64_t>(0, 1'000'000) * kSecond;
      pod.wait = *maybe_seconds();
      pod.duration = *maybe_seconds();
    }
    trace.pods.push_back(pod);
  }
  return trace;
}

MilliGpu demand(const PodRecord& pod) {
  return pod.gpus * pod.gpu_milli;
}

MilliGpu demand(const Trace& trace) {
  MilliGpu total = 0;
  for (const PodRecord& pod : trace.pods) total += demand(pod);
  return total;
}

void check(bool holds) {
  ASSERT_TRUE(holds);
}

TEST(TracesProperty, WrittenPodsReadBackTheSame) {
  check(rc::check([] {
    const Trace trace = any_trace(true);
    std::stringstream file;
    write_openb_pods(file, trace.pods);
    const auto again = read_openb(file, "t");
    RC_ASSERT(again.ok());
    RC_ASSERT(again->pods.size() == trace.pods.size());
    for (std::size_t i = 0; i < trace.pods.size(); ++i) {
      const auto all = [](const PodRecord& p) {
        return std::tie(p.name, p.cpu, p.memory, p.gpus, p.gpu_milli, p.gpu_spec, p.submit, p.duration, p.wait,
                        p.status, p.qos);
      };
      RC_ASSERT(all(again->pods[i]) == all(trace.pods[i]));
    }
  }));
}

TEST(TracesProperty, CutFilesAreReadInPartOrRefusedButNeverCrash) {
  check(rc::check([] {
    const Trace trace = any_trace(true);
    std::ostringstream whole;
    write_openb_pods(whole, trace.pods);
    std::istringstream cut(whole.str().substr(0, *rc::gen::inRange<std::size_t>(0, whole.str().size())));
    const auto some = read_openb(cut, "t");
    const bool sound = some.ok() ? some->pods.size() <= trace.pods.size() : some.message().starts_with("t:");
    RC_ASSERT(sound);
  }));
}

TEST(TracesProperty, TuningUpFollowsThePublishedRule) {
  check(rc::check([] {
    const Trace trace = any_trace(false);
    const MilliGpu before = demand(trace);
    RC_PRE(before > 0);
    const MilliGpu capacity = before + *rc::gen::inRange<MilliGpu>(0, 20'000);
    const auto arrivals = inflate(trace, 1.0, capacity, *rc::gen::arbitrary<std::uint64_t>());
    RC_ASSERT(arrivals.ok());
    RC_ASSERT(arrivals->size() >= trace.pods.size());
    std::set<std::uint32_t> originals;
    std::set<std::string> names;
    MilliGpu total = before;
    for (std::size_t i = 0; i < arrivals->size(); ++i) {
      const Arrival& arrival = (*arrivals)[i];
      RC_ASSERT(names.insert(arrival.name).second);
      if (i < trace.pods.size()) {
        RC_ASSERT(arrival.name == trace.pods[arrival.pod].name);
        originals.insert(arrival.pod);
        continue;
      }
      RC_ASSERT(arrival.name.starts_with(trace.pods[arrival.pod].name + "-clone-"));
      RC_ASSERT(total + trace.pods[arrival.pod].gpu_milli <= capacity);
      total += demand(trace.pods[arrival.pod]);
    }
    RC_ASSERT(originals.size() == trace.pods.size());
    // It stopped only because some pod of the trace would have exceeded the target.
    const bool stopped_rightly = before >= capacity || total + kWholeGpu > capacity;
    RC_ASSERT(stopped_rightly);
  }));
}

TEST(TracesProperty, TuningDownEndsWithinTheTargetAndOnlyJust) {
  check(rc::check([] {
    const Trace trace = any_trace(false);
    const MilliGpu before = demand(trace);
    RC_PRE(before > 0);
    const MilliGpu capacity = *rc::gen::inRange<MilliGpu>(0, before);
    const auto arrivals = inflate(trace, 1.0, capacity, *rc::gen::arbitrary<std::uint64_t>());
    RC_ASSERT(arrivals.ok());
    std::set<std::string> names;
    MilliGpu total = 0;
    for (const Arrival& arrival : *arrivals) {
      RC_ASSERT(names.insert(arrival.name).second);
      RC_ASSERT(arrival.name == trace.pods[arrival.pod].name);
      total += demand(trace.pods[arrival.pod]);
    }
    RC_ASSERT(total <= capacity);
    // The last pod that left was one too many, so adding the largest pod again must exceed the target.
    RC_ASSERT(total + 8 * kWholeGpu > capacity);
  }));
}

}  // namespace
}  // namespace mortise::traces
