#include "tests/property/scenario.h"

#include <rapidcheck.h>

#include <sstream>
#include <tuple>
#include <utility>

namespace mortise::property {
namespace {

namespace gen = rc::gen;
using placement::PodClass;
using placement::PodRequest;

constexpr Bytes kGiB = 1024 * kMiB;
// Ranges and weights reach their full width at this size.
constexpr int kFullSize = 100;

// The nodes are one of the sizes found in clusters; a few are beyond what the published scores were made for.
rc::Gen<RankedNode> node() {
  return gen::apply(
      [](std::int32_t gpus, MilliCpu cpu, Bytes gib, std::int32_t pods, std::string model, bool schedulable,
         std::uint64_t rank) {
        if (gpus == 0) model.clear();
        return RankedNode{{"", cpu, gib * kGiB, pods, gpus, std::move(model), schedulable}, rank};
      },
      gen::weightedElement<std::int32_t>({{2, 0}, {2, 1}, {3, 2}, {1, 3}, {3, 4}, {4, 8}, {1, 16}}),
      gen::element<MilliCpu>(2000, 8000, 16000, 32000, 64000, 96000, 128000, 192000),
      gen::element<Bytes>(4, 16, 64, 256),
      gen::weightedElement<std::int32_t>({{1, 0}, {1, 1}, {2, 3}, {3, 8}, {9, 110}}),
      gen::weightedElement<std::string>({{5, "A"}, {3, "B"}, {2, "C"}, {1, ""}}),
      gen::weightedElement<bool>({{9, true}, {1, false}}), gen::inRange<std::uint64_t>(0, 24));
}

using Models = std::vector<std::string>;

PodRequest cpu_pod(MilliCpu cpu, Bytes gib) {
  PodRequest pod;
  pod.cpu = cpu;
  pod.memory = gib * kGiB;
  return pod;
}

PodRequest gpu_pod(PodRequest pod, std::int32_t gpus, MilliGpu milli, Models models) {
  pod.gpus = gpus;
  pod.gpu_milli = milli;
  pod.models = std::move(models);
  return pod;
}

rc::Gen<PodRequest> without_gpu(MilliCpu least_cpu) {
  return gen::apply(&cpu_pod, gen::element<MilliCpu>(least_cpu, 250, 1000, 2000, 4000, 4000, 8000, 16000, 32000),
                    gen::element<Bytes>(0, 1, 1, 2, 4, 8, 16));
}

rc::Gen<Models> models() {
  return gen::weightedElement<Models>({{8, {}}, {2, {"A"}}, {1, {"A", "B"}}, {1, {"B", "C"}}, {1, {"C"}}});
}

// A pod some cluster could take; `least_cpu` is the smallest CPU request drawn.
rc::Gen<PodRequest> usual_pod(MilliCpu least_cpu) {
  return gen::weightedOneOf<PodRequest>({
      {2, without_gpu(least_cpu)},
      {5, gen::apply(&gpu_pod, without_gpu(least_cpu), gen::just<std::int32_t>(1),
                     gen::element<MilliGpu>(1, 10, 100, 250, 300, 333, 460, 500, 501, 650, 810, 999), models())},
      {4,
       gen::apply(&gpu_pod, without_gpu(least_cpu),
                  gen::weightedElement<std::int32_t>({{6, 1}, {4, 2}, {1, 3}, {3, 4}, {1, 5}, {1, 6}, {1, 7}, {2, 8}}),
                  gen::just(kWholeGpu), models())},
  });
}

// A pod no node takes, each for another reason.
rc::Gen<PodRequest> impossible_pod() {
  return gen::element(gpu_pod(cpu_pod(1000, 1), 1, 500, {"Z"}), gpu_pod(cpu_pod(1000, 1), 17, kWholeGpu, {}),
                      cpu_pod(1'000'000, 1), cpu_pod(1000, 1'000'000),
                      gpu_pod(cpu_pod(1'000'000, 1), 1, kWholeGpu, {}));
}

rc::Gen<Event> event() {
  return gen::apply(
      [](bool arrival, PodRequest pod, std::uint32_t copies, std::uint32_t which) {
        return Event{arrival, std::move(pod), copies, which};
      },
      gen::weightedElement<bool>({{3, true}, {1, false}}),
      gen::weightedOneOf<PodRequest>({{19, usual_pod(0)}, {1, impossible_pod()}}),
      gen::weightedElement<std::uint32_t>({{12, 1}, {2, 2}, {1, 4}, {1, 8}}), gen::inRange<std::uint32_t>(0, 1000));
}

std::string joined(const Models& models) {
  std::string text;
  for (const std::string& model : models) text += (text.empty() ? "" : "|") + model;
  return text;
}

// Some pods, each several times: the counts make classes more or less typical.
rc::Gen<std::vector<PodClass>> workload() {
  auto some = gen::pair(usual_pod(100), gen::inRange<std::uint32_t>(1, 30));
  return gen::map(
      gen::resize(20, gen::container<std::vector<std::pair<PodRequest, std::uint32_t>>>(
                          gen::resize(kFullSize, std::move(some)))),
      [](const std::vector<std::pair<PodRequest, std::uint32_t>>& drawn) {
        std::vector<PodClass> classes;
        for (const auto& [pod, count] : drawn) {
          const MilliGpu milli = pod.gpus > 0 ? pod.gpu_milli : 0;
          classes.insert(classes.end(), count, PodClass{pod.cpu, milli, pod.gpus, joined(pod.models), pod.models});
        }
        return classes;
      });
}

rc::Gen<Scenario> scenario() {
  return gen::apply(
      [](RankedNode first, std::vector<RankedNode> nodes, std::vector<PodClass> classes, std::vector<Event> events,
         std::uint64_t seed) {
        nodes.insert(nodes.begin(), std::move(first));
        for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i].spec.name = "n" + std::to_string(i);
        return Scenario{std::move(nodes), std::move(classes), std::move(events), seed};
      },
      gen::resize(kFullSize, node()),
      gen::resize(11, gen::container<std::vector<RankedNode>>(gen::resize(kFullSize, node()))), workload(),
      gen::resize(60, gen::container<std::vector<Event>>(gen::resize(kFullSize, event()))),
      gen::resize(kFullSize, gen::inRange<std::uint64_t>(0, 1000)));
}

}  // namespace

Scenario any_scenario() {
  return *scenario();
}

std::uint32_t any_below(std::uint32_t bound) {
  return *gen::resize(kFullSize, gen::inRange<std::uint32_t>(0, bound));
}

std::string to_text(const PodRequest& pod) {
  std::ostringstream text;
  text << "cpu " << pod.cpu << "m, " << pod.memory / kGiB << " GiB";
  if (pod.gpus > 0) text << ", " << pod.gpus << " x " << pod.gpu_milli << "m gpu [" << joined(pod.models) << "]";
  return text.str();
}

std::ostream& operator<<(std::ostream& out, const Scenario& scenario) {
  out << "seed " << scenario.seed << "\nnodes:\n";
  for (const RankedNode& n : scenario.nodes) {
    out << "  " << n.spec.name << " rank " << n.rank << ": cpu " << n.spec.cpu << "m, " << n.spec.memory / kGiB
        << " GiB, " << n.spec.pods << " pods, " << n.spec.gpus << " gpus '" << n.spec.model << "'"
        << (n.spec.schedulable ? "" : ", cordoned") << "\n";
  }
  out << "workload:\n";
  for (const PodClass& c : scenario.workload) {
    out << "  cpu " << c.cpu << "m, " << c.gpus << " x " << c.gpu_milli << "m [" << c.gpu_spec << "]\n";
  }
  out << "events:\n";
  for (const Event& e : scenario.events) {
    if (e.arrival) {
      out << "  arrival of " << e.copies << ": " << to_text(e.pod) << "\n";
    } else {
      out << "  departure of number " << e.which << "\n";
    }
  }
  return out;
}

}  // namespace mortise::property
