// One script of pods, once through the extender's verbs as kube-scheduler would send them and once through the
// simulator: one core, so the same nodes and the same devices.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "scheduler/base/clock.h"
#include "scheduler/extender/handlers.h"
#include "scheduler/extender/metrics.h"
#include "scheduler/extender/service.h"
#include "scheduler/extender/startup.h"
#include "sim/arrivals.h"
#include "sim/replay.h"
#include "sim/workload.h"
#include "tests/support/tree.h"
#include "traces/formats.h"
#include "traces/openb.h"

namespace mortise {
namespace {

using nlohmann::json;

constexpr std::uint64_t kSeed = 7;
const std::string kCluster = mortise::test::source_dir() + "/config/clusters/sample-nodes.csv";

// The GPU pods of the sample: the extender does not see the others.
std::string gpu_pods_file() {
  const auto sample = traces::read_trace_file(mortise::test::source_dir() + "/traces/samples/sample-pods.csv");
  EXPECT_TRUE(sample.ok());
  std::vector<traces::PodRecord> pods;
  for (const traces::PodRecord& pod : sample->pods) {
    if (pod.gpus > 0) pods.push_back(pod);
  }
  const std::string path = testing::TempDir() + "parity-pods.csv";
  std::ofstream out(path);
  traces::write_openb_pods(out, pods);
  return path;
}

json pod_object(const traces::PodRecord& pod) {
  json limits{{"cpu", std::to_string(pod.cpu) + "m"}, {"memory", std::to_string(pod.memory)}};
  if (pod.gpu_milli < kWholeGpu) {
    limits["mortise.dev/gpu-milli"] = std::to_string(pod.gpu_milli);
  } else {
    limits["nvidia.com/gpu"] = std::to_string(pod.gpus);
  }
  return {{"metadata", {{"name", pod.name}, {"namespace", "default"}, {"uid", "uid-" + pod.name}}},
          {"spec", {{"containers", {{{"name", "main"}, {"resources", {{"limits", limits}}}}}}}}};
}

struct Outcome {
  std::vector<std::string> nodes;                         // per pod, in order of arrival; "FAIL": none
  std::map<std::string, std::vector<std::int64_t>> left;  // milli-GPU left per device, by node, at the end

  bool operator==(const Outcome&) const = default;
};

Outcome through_the_extender(const traces::Trace& trace, const std::string& pods, const std::string& policy) {
  auto loaded = extender::load({kCluster, policy, kSeed, "", pods});
  EXPECT_TRUE(loaded.ok());
  ManualClock clock;
  extender::Handlers handlers(*loaded->engine, *loaded->bookings, clock);
  extender::Metrics metrics;
  extender::Service service(handlers, *loaded->state, *loaded->fragmentation, metrics, clock);

  const placement::ClusterState& cluster = *loaded->state;
  json names = json::array();
  for (std::uint32_t n = 0; n < cluster.node_count(); ++n) names.push_back(cluster.node_name(NodeId{n}));
  Outcome outcome;
  for (const traces::PodRecord& pod : trace.pods) {
    const json answer = json::parse(
        service.filter(json{{"Pod", pod_object(pod)}, {"Nodes", nullptr}, {"NodeNames", names}}.dump()).body);
    EXPECT_EQ(answer["Error"], "");
    if (answer["NodeNames"].empty()) {
      outcome.nodes.push_back("FAIL");
      continue;
    }
    const std::string node = answer["NodeNames"][0];
    const json bound = json::parse(
        service
            .bind(
                json{{"PodName", pod.name}, {"PodNamespace", "default"}, {"PodUID", "uid-" + pod.name}, {"Node", node}}
                    .dump())
            .body);
    EXPECT_EQ(bound["Error"], "");
    outcome.nodes.push_back(node);
  }
  for (std::uint32_t n = 0; n < cluster.node_count(); ++n) {
    const auto free = cluster.state_of(NodeId{n}).free_devices();
    outcome.left[cluster.node_name(NodeId{n})].assign(free.begin(), free.end());
  }
  return outcome;
}

Outcome through_the_simulator(const traces::Trace& trace, const std::string& policy) {
  const auto cluster = kube::load_cluster_file(kCluster);
  EXPECT_TRUE(cluster.ok());
  const std::string order = testing::TempDir() + "parity-order.txt";
  {
    std::ofstream out(order);
    for (const traces::PodRecord& pod : trace.pods) out << pod.name << '\n';
  }
  const auto arrival = sim::load_arrival("order:" + order);
  EXPECT_TRUE(arrival.ok());
  const sim::Workload workload(trace);
  std::ostringstream placements;
  sim::ReplayHooks hooks;
  hooks.placements = &placements;
  EXPECT_TRUE(sim::replay({*cluster, nullptr, workload, *arrival, policy, kSeed}, hooks).ok());

  Outcome outcome;
  for (const placement::NodeSpec& node : cluster->nodes) {
    outcome.left[node.name].assign(static_cast<std::size_t>(node.gpus), kWholeGpu);
  }
  std::istringstream lines(placements.str());
  std::string line;
  for (const traces::PodRecord& pod : trace.pods) {
    std::getline(lines, line);
    std::istringstream fields(line);
    std::string name, node, devices;
    fields >> name >> node >> devices;
    EXPECT_EQ(name, pod.name);
    outcome.nodes.push_back(node);
    if (node == "FAIL") continue;
    std::istringstream indices(devices);
    for (std::string index; std::getline(indices, index, ',');) outcome.left[node][std::stoul(index)] -= pod.gpu_milli;
  }
  return outcome;
}

class Parity : public testing::TestWithParam<const char*> {};

TEST_P(Parity, TheExtenderAndTheSimulatorPlaceEveryPodAlike) {
  const std::string pods = gpu_pods_file();
  const auto trace = traces::read_trace_file(pods);
  ASSERT_TRUE(trace.ok());
  const Outcome live = through_the_extender(*trace, pods, GetParam());
  const Outcome simulated = through_the_simulator(*trace, GetParam());
  ASSERT_EQ(live.nodes.size(), trace->pods.size());
  EXPECT_GT(std::count(live.nodes.begin(), live.nodes.end(), "FAIL"), 0) << "the script should overfill the cluster";
  EXPECT_EQ(live, simulated);
}

INSTANTIATE_TEST_SUITE_P(Policies, Parity,
                         testing::Values("random", "first-fit", "best-fit", "dot-product", "gpu-packing",
                                         "gpu-clustering", "fgd", "fgd:tie=best-fit", "fgd:tie=random", "fgd+best-fit"),
                         [](const auto& row) { return "p" + std::to_string(row.index); });

TEST(Parity, AnotherPolicyPlacesDifferently) {
  const std::string pods = gpu_pods_file();
  const auto trace = traces::read_trace_file(pods);
  ASSERT_TRUE(trace.ok());
  EXPECT_NE(through_the_extender(*trace, pods, "fgd"), through_the_simulator(*trace, "best-fit"));
}

}  // namespace
}  // namespace mortise
