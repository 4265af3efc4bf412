#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/property/policies_under_test.h"
#include "tests/property/scenario.h"
#include "tests/property/twin.h"
#include "tests/support/for_all.h"

namespace mortise::property {
namespace {

using placement::Decision;
using placement::Placed;
using placement::PodRequest;

class EngineProperty : public testing::TestWithParam<std::string> {};

TEST_P(EngineProperty, DecidesAsTheReferenceDoes) {
  test::for_all(1000, [&] {
    const Scenario scenario = any_scenario();
    Twin twin(scenario, GetParam());
    for (const Event& event : scenario.events) {
      twin.run(event);
      twin.compare_state();
    }
  });
}

TEST_P(EngineProperty, SeesNodesAddedLater) {
  test::for_all(100, [&] {
    const Scenario scenario = any_scenario();
    const std::size_t first = any_below(static_cast<std::uint32_t>(scenario.nodes.size()));
    Twin twin(scenario, GetParam(), first);
    std::size_t next = first;
    for (const Event& event : scenario.events) {
      if (next < scenario.nodes.size()) twin.add_node(scenario.nodes[next++]);
      twin.run(event);
      twin.compare_state();
      twin.compare_fragmentation();
    }
  });
}

// A second cluster of the same nodes under other names and in another order. Ranks differ between nodes here, for among
// equal ranks the order of the nodes decides.
TEST_P(EngineProperty, NamesAndOrderOfNodesDoNotMatter) {
  test::for_all(100, [&] {
    Scenario scenario = any_scenario();
    for (std::size_t i = 0; i < scenario.nodes.size(); ++i) {
      scenario.nodes[i].rank = scenario.nodes[i].rank * scenario.nodes.size() + i;
    }
    Scenario other = scenario;
    Rng(scenario.seed).shuffle(other.nodes);
    for (std::size_t i = 0; i < other.nodes.size(); ++i) other.nodes[i].spec.name = "other-" + std::to_string(100 - i);

    Twin here(scenario, GetParam());
    Twin there(other, GetParam());
    for (const Event& event : scenario.events) {
      here.run(event);
      there.run(event);
      RC_ASSERT(here.held().size() == there.held().size());
      for (std::size_t i = 0; i < here.held().size(); ++i) {
        const auto& a = *here.cluster().allocation(here.held()[i].id);
        const auto& b = *there.cluster().allocation(there.held()[i].id);
        RC_ASSERT(here.cluster().node_rank(a.node) == there.cluster().node_rank(b.node));
        RC_ASSERT(a.devices == b.devices);
      }
    }
  });
}

TEST_P(EngineProperty, RefusesAStalePlanAndChangesNothing) {
  test::for_all(100, [&] {
    const Scenario scenario = any_scenario();
    Twin twin(scenario, GetParam());
    // Plans wait while other pods come and go; the reference says which of them still have their room.
    std::vector<std::pair<PodRequest, Placed>> waiting;
    for (const Event& event : scenario.events) {
      twin.run(event);
      PodRequest pod = event.pod;
      pod.name = twin.next_name();
      const Decision decision = twin.plan(pod);
      if (const auto* placed = std::get_if<Placed>(&decision)) waiting.emplace_back(pod, *placed);
      if (waiting.size() < 3) continue;
      for (const auto& [late, place] : waiting) {
        twin.commit(late, place);
        twin.compare_state();
      }
      waiting.clear();
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Policies, EngineProperty, testing::ValuesIn(reference_spellings()),
                         [](const auto& each) { return case_name(each.param); });

}  // namespace
}  // namespace mortise::property
