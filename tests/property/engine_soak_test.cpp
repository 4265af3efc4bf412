#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <optional>
#include <string>
#include <vector>

#include "scheduler/base/rng.h"
#include "tests/property/scenario.h"
#include "tests/property/twin.h"
#include "tests/support/for_all.h"

// What only long runs reach: memory of the past that is given up, and slots that are used again.
namespace mortise::property {
namespace {

using placement::Placed;
using placement::PodRequest;

void run_all(Twin& twin, const Scenario& scenario) {
  for (const Event& event : scenario.events) twin.run(event);
}

// Changes every node for good without asking the engine, which would look.
void change_unseen(Twin& twin) {
  for (std::uint32_t node = 0; node < twin.nodes().size(); ++node) {
    PodRequest pod;
    pod.name = twin.next_name();
    pod.cpu = reference::left_on(twin.nodes()[node]).cpu / 2;
    twin.commit(pod, Placed{NodeId{node}, {}, 0});
  }
}

// Takes the shape on some node and gives it back.
void come_and_go(Twin& twin, ShapeId shape) {
  for (std::uint32_t node = 0; node < twin.nodes().size(); ++node) {
    const auto id = twin.cluster().apply(shape, NodeId{node}, {});
    if (!id) continue;
    RC_ASSERT(twin.cluster().release(*id).ok());
    return;
  }
}

TEST(EngineSoak, LongRunsStayEqualToTheReference) {
  for (const char* policy : {"fgd", "best-fit", "random"}) {
    test::for_all(10, [&] {
      const Scenario scenario = any_scenario();
      RC_PRE(!scenario.events.empty());
      Twin twin(scenario, policy);
      Rng rng(scenario.seed);
      for (int step = 0; step < 3000; ++step) {
        // The later an event stands in the scenario, the rarer it is.
        const std::uint64_t latest = 1 + rng.below(scenario.events.size());
        twin.run(scenario.events[rng.below(latest)]);
        if (twin.held().size() > 60) twin.release(rng.below(twin.held().size()));
      }
      twin.compare_state();
      twin.compare_fragmentation();
    });
  }
}

// More states than are kept, several times over: what was known about a dead one must not be taken for its successor's.
TEST(EngineSoak, ForgottenStatesLeaveNothingBehind) {
  for (const char* policy : {"fgd", "gpu-packing"}) {
    test::for_all(5, [&] {
      const Scenario scenario = any_scenario();
      RC_PRE(!scenario.events.empty());
      Twin twin(scenario, policy);
      for (std::size_t step = 0; step < 10'000; ++step) {
        // A different amount each time, so that hardly any state comes twice.
        PodRequest pod;
        pod.name = twin.next_name();
        pod.memory = 1 + static_cast<Bytes>(step);
        twin.commit(pod, Placed{NodeId{static_cast<std::uint32_t>(step % scenario.nodes.size())}, {}, 0});
        if (step % 4 == 0) twin.run(scenario.events[(step / 4) % scenario.events.size()]);
        while (twin.held().size() > 15) twin.release(0);
      }
      twin.compare_state();
      twin.compare_fragmentation();
    });
  }
}

// Node i + kLeaders follows node i into each state half a round later, while many other states come and go.
TEST(EngineSoak, EqualStatesShareOneIdThroughAllForgetting) {
  constexpr std::uint32_t kLeaders = 64;
  placement::ClusterState cluster;
  for (std::uint32_t i = 0; i < 2 * kLeaders; ++i) {
    const placement::NodeSpec spec{"n" + std::to_string(i), 1000, kMiB, 3, 0, "", true};
    ASSERT_TRUE(cluster.add_node(spec, i).ok());
  }
  std::vector<std::optional<AllocationId>> on_node(2 * kLeaders);
  const auto move = [&](std::uint32_t node, Bytes memory) {
    PodRequest pod;
    pod.memory = memory;
    const auto id = cluster.apply(cluster.intern(pod), NodeId{node}, {});
    ASSERT_TRUE(id.ok());
    if (on_node[node]) {
      ASSERT_TRUE(cluster.release(*on_node[node]).ok());
    }
    on_node[node] = *id;
  };
  for (std::uint32_t step = 0; step < 20'000; ++step) {
    move(step % kLeaders, 1 + step);
    if (step < kLeaders / 2) continue;
    const std::uint32_t then = step - kLeaders / 2;
    move(then % kLeaders + kLeaders, 1 + then);
    ASSERT_EQ(cluster.node_state(NodeId{then % kLeaders}), cluster.node_state(NodeId{then % kLeaders + kLeaders}))
        << "step " << step;
  }
}

// More changes than are remembered for those who have not looked for a while.
TEST(EngineSoak, CatchesUpAfterMoreChangesThanAreRemembered) {
  test::for_all(3, [] {
    const Scenario scenario = any_scenario();
    Twin twin(scenario, "fgd");
    run_all(twin, scenario);
    twin.compare_fragmentation();
    change_unseen(twin);
    const ShapeId nothing = twin.cluster().intern(PodRequest{});
    for (int i = 0; i < 70'000; ++i) come_and_go(twin, nothing);
    twin.compare_fragmentation();
    run_all(twin, scenario);
    twin.compare_state();
    twin.compare_fragmentation();
  });
}

// More kinds of pods than are remembered; the first ones come again later.
TEST(EngineSoak, ManyKindsOfPodsAreDecidedAsTheReferenceDoes) {
  test::for_all(2, [] {
    const Scenario scenario = any_scenario();
    Twin twin(scenario, "best-fit");
    for (int round = 0; round < 2; ++round) {
      for (int kind = 0; kind < 1200; ++kind) {
        PodRequest pod;
        pod.cpu = 1 + kind;
        pod.gpus = kind % 2;
        pod.gpu_milli = 1 + kind % 1000;
        twin.run({true, pod, 1, 0});
        if (twin.held().size() > 40) twin.release(0);
      }
    }
    twin.compare_state();
  });
}

}  // namespace
}  // namespace mortise::property
