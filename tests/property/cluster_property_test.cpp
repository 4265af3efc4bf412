#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <optional>
#include <vector>

#include "tests/property/scenario.h"
#include "tests/property/twin.h"
#include "tests/support/for_all.h"

namespace mortise::property {
namespace {

using placement::ClusterState;
using placement::ClusterTotals;
using placement::NodeState;

/// All that can be seen of a cluster's allocations.
struct Picture {
  ClusterTotals totals;
  std::vector<NodeState> states;
  std::vector<reference::Node> nodes;
  std::vector<Held> held;
};

Picture picture_of(Twin& twin) {
  Picture picture{twin.cluster().totals(), {}, twin.nodes(), twin.held()};
  for (std::uint32_t i = 0; i < twin.cluster().node_count(); ++i) {
    picture.states.push_back(twin.cluster().state_of(NodeId{i}));
  }
  return picture;
}

// Hands the reference its old nodes and pods and expects that the cluster is back there too.
void expect_back(Twin& twin, const Picture& before, const std::vector<Held>& made_since) {
  for (const Held& held : made_since) {
    bool of_before = false;
    for (const Held& old : before.held) of_before = of_before || old.id == held.id;
    // An id may have been used before for a pod released since; then it is that pod's again.
    if (!of_before && twin.cluster().allocation(held.id) != nullptr) fail("an undone allocation is still there");
  }
  twin.nodes() = before.nodes;
  twin.held() = before.held;
  twin.compare_state();
  twin.compare_fragmentation();
  RC_ASSERT(twin.cluster().totals() == before.totals);
  for (std::uint32_t i = 0; i < twin.cluster().node_count(); ++i) {
    RC_ASSERT(twin.cluster().state_of(NodeId{i}) == before.states[i]);
  }
}

TEST(ClusterProperty, UndoRestoresWhatWasThereAtTheMark) {
  test::for_all(500, [] {
    const Scenario scenario = any_scenario();
    Twin twin(scenario, "best-fit");
    struct Open {
      ClusterState::Mark mark;
      Picture before;
      std::vector<Held> made;
    };
    std::vector<Open> open;
    for (const Event& event : scenario.events) {
      switch (any_below(6)) {
        case 0:
          open.push_back({twin.cluster().mark(), picture_of(twin), {}});
          break;
        case 1:
          if (open.empty()) break;
          twin.cluster().undo(open.back().mark);
          expect_back(twin, open.back().before, open.back().made);
          open.pop_back();
          break;
        case 2:
          if (open.empty()) break;
          twin.cluster().keep(open.back().mark);
          twin.compare_state();
          if (open.size() > 1) {
            auto& outer = open[open.size() - 2].made;
            outer.insert(outer.end(), open.back().made.begin(), open.back().made.end());
          }
          open.pop_back();
          break;
        default:
          break;
      }
      twin.run(event);
      twin.compare_state();
      if (!open.empty()) {
        open.back().made.insert(open.back().made.end(), twin.held().begin(), twin.held().end());
      }
    }
    while (!open.empty()) {
      twin.cluster().undo(open.back().mark);
      expect_back(twin, open.back().before, open.back().made);
      open.pop_back();
    }
    // Nothing is left of the marks: the cluster works on as before.
    for (const Event& event : scenario.events) twin.run(event);
    twin.compare_state();
  });
}

TEST(FragmentationProperty, EqualsTheFullSum) {
  test::for_all(500, [] {
    const Scenario scenario = any_scenario();
    Twin twin(scenario, "best-fit");
    twin.compare_fragmentation();
    for (const Event& event : scenario.events) {
      twin.run(event);
      twin.compare_fragmentation();
    }
  });
}

// The distribution itself: classes in order, weights to the last bit.
TEST(FragmentationProperty, TypicalClassesAreThoseOfTheReference) {
  test::for_all(500, [] {
    const Scenario scenario = any_scenario();
    ClusterState cluster;
    const placement::TypicalPods typical(scenario.workload, cluster);
    const std::vector<reference::Typical> expected = reference::typical_classes(scenario.workload);
    RC_ASSERT(typical.classes().size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const placement::TypicalPod& product = typical.classes()[i];
      RC_ASSERT(product.cpu == expected[i].pod.cpu);
      RC_ASSERT(product.gpus == expected[i].pod.gpus);
      RC_ASSERT(product.gpu_milli == expected[i].pod.gpu_milli);
      RC_ASSERT(product.models.size() == expected[i].pod.models.size());
      RC_ASSERT(product.weight == expected[i].weight);
    }
  });
}

}  // namespace
}  // namespace mortise::property
