#include "tests/property/scenario.h"

#include <rapidcheck.h>

#include <sstream>
#include <utility>

namespace mortise::property {
namespace {

namespace gen = rc::gen;
using placement::PodClass;
using placement::PodRequest;

constexpr Bytes kGiB = 1024 * kMiB;
// Ranges reach their full width at this size.
constexpr int kFullSize = 100;

template <class T>
rc::Gen<T> full(rc::Gen<T> element) {
  return gen::resize(kFullSize, std::move(element));
}

template <class T>
rc::Gen<std::vector<T>> up_to(int most, rc::Gen<T> element) {
  return gen::resize(most, gen::container<std::vector<T>>(full(std::move(element))));
}

struct DrawnNode {
  RankedNode node;
  bool as_the_last = false;
};

// The nodes are of the sizes found in clusters; a few are beyond what the published scores were made for. Half are like
// the node before, so that nodes in equal states are frequent.
rc::Gen<DrawnNode> node() {
  return gen::apply(
      [](std::int32_t gpus, MilliCpu cpu, Bytes gib, std::int32_t pods, std::string model, bool schedulable,
         std::uint64_t rank, bool as_the_last) {
        if (gpus == 0) model.clear();
        return DrawnNode{{{"", cpu, gib * kGiB, pods, gpus, std::move(model), schedulable}, rank}, as_the_last};
      },
      gen::weightedElement<std::int32_t>({{4, 0}, {4, 1}, {6, 2}, {2, 3}, {6, 4}, {8, 8}, {2, 16}, {1, 20}, {1, 72}}),
      gen::element<MilliCpu>(2000, 8000, 16000, 32000, 64000, 96000, 128000, 192000),
      gen::element<Bytes>(4, 16, 64, 256),
      gen::weightedElement<std::int32_t>({{1, 0}, {1, 1}, {2, 3}, {3, 8}, {9, 110}}),
      gen::weightedElement<std::string>({{5, "A"}, {3, "B"}, {2, "C"}, {1, ""}}),
      gen::weightedElement<bool>({{9, true}, {1, false}}), gen::inRange<std::uint64_t>(0, 24),
      gen::element(false, true));
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

rc::Gen<PodRequest> without_gpu() {
  return gen::apply(&cpu_pod,
                    gen::elementOf(std::vector<MilliCpu>{0, 0, 0, 100, 250, 1000, 2000, 4000, 8000, 16000, 32000}),
                    gen::element<Bytes>(0, 0, 0, 1, 1, 2, 4, 8, 16));
}

rc::Gen<Models> models() {
  return gen::weightedElement<Models>({{8, {}}, {2, {"A"}}, {1, {"A", "B"}}, {1, {"B", "C"}}, {1, {"C"}}});
}

// A pod some cluster could take.
rc::Gen<PodRequest> usual_pod() {
  return gen::weightedOneOf<PodRequest>({
      {2, without_gpu()},
      {5, gen::apply(&gpu_pod, without_gpu(), gen::just<std::int32_t>(1),
                     gen::element<MilliGpu>(1, 10, 100, 250, 300, 333, 460, 500, 501, 650, 810, 999), models())},
      {4, gen::apply(&gpu_pod, without_gpu(),
                     gen::weightedElement<std::int32_t>(
                         {{12, 1}, {8, 2}, {2, 3}, {6, 4}, {2, 5}, {2, 6}, {2, 7}, {4, 8}, {1, 16}}),
                     gen::just(kWholeGpu), models())},
  });
}

// A pod no node takes, each for another reason.
rc::Gen<PodRequest> impossible_pod() {
  return gen::element(gpu_pod(cpu_pod(1000, 1), 1, 500, {"Z"}), gpu_pod(cpu_pod(1000, 1), 73, kWholeGpu, {}),
                      cpu_pod(1'000'000, 1), cpu_pod(1000, 1'000'000),
                      gpu_pod(cpu_pod(1'000'000, 1), 1, kWholeGpu, {}));
}

rc::Gen<PodRequest> any_pod() {
  return gen::weightedOneOf<PodRequest>({{19, usual_pod()}, {1, impossible_pod()}});
}

// The pod of an arrival is filled in later.
rc::Gen<Event> event() {
  return gen::apply(
      [](bool arrival, std::uint32_t copies, std::uint32_t which) {
        return Event{arrival, {}, copies, which};
      },
      gen::weightedElement<bool>({{3, true}, {1, false}}),
      gen::weightedElement<std::uint32_t>({{12, 1}, {2, 2}, {1, 4}, {1, 8}}), gen::inRange<std::uint32_t>(0, 1000));
}

std::string joined(const Models& models) {
  std::string text;
  for (const std::string& model : models) text += (text.empty() ? "" : "|") + model;
  return text;
}

// Some pods, each several times: the counts make classes more or less typical.
rc::Gen<std::vector<PodClass>> workload() {
  using Drawn = std::pair<PodRequest, std::uint32_t>;
  return gen::map(up_to<Drawn>(20, gen::pair(usual_pod(), gen::inRange<std::uint32_t>(1, 30))),
                  [](const std::vector<Drawn>& drawn) {
                    std::vector<PodClass> classes;
                    for (const auto& [pod, count] : drawn) {
                      const MilliGpu milli = pod.gpus > 0 ? pod.gpu_milli : 0;
                      const PodClass kind{pod.cpu, milli, pod.gpus, joined(pod.models), pod.models};
                      classes.insert(classes.end(), count, kind);
                    }
                    return classes;
                  });
}

// Events draw from a few kinds of pods: what is remembered about a kind matters only when it comes again.
Scenario assemble(DrawnNode first, std::vector<DrawnNode> nodes, std::vector<PodClass> classes, PodRequest first_kind,
                  std::vector<PodRequest> kinds, std::vector<Event> events, std::uint64_t seed) {
  Scenario scenario{{}, std::move(classes), std::move(events), seed};
  nodes.insert(nodes.begin(), std::move(first));
  for (DrawnNode& drawn : nodes) {
    if (drawn.as_the_last && !scenario.nodes.empty()) drawn.node.spec = scenario.nodes.back().spec;
    drawn.node.spec.name = "n" + std::to_string(scenario.nodes.size());
    scenario.nodes.push_back(std::move(drawn.node));
  }
  kinds.push_back(std::move(first_kind));
  for (Event& event : scenario.events) {
    if (event.arrival) event.pod = kinds[event.which % kinds.size()];
  }
  return scenario;
}

rc::Gen<Scenario> scenario() {
  return gen::apply(&assemble, full(node()), up_to(11, node()), workload(), full(any_pod()), up_to(9, any_pod()),
                    up_to(60, event()), full(gen::inRange<std::uint64_t>(0, 1000)));
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
