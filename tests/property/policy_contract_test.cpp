#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "scheduler/placement/cluster_state.h"
#include "scheduler/placement/engine.h"
#include "scheduler/placement/policy.h"
#include "tests/property/policies_under_test.h"
#include "tests/property/scenario.h"
#include "tests/property/twin.h"
#include "tests/support/for_all.h"
#include "tests/support/reference_engine.h"

namespace mortise::property {
namespace {

using placement::ClusterState;
using placement::Decision;
using placement::Engine;
using placement::NodeAnswer;
using placement::Placed;
using placement::PodRequest;
using placement::Policy;
using placement::Reason;
using placement::Score;

// What every policy must keep, also one that no reference knows: rows of the table, spellings with options, sums.
std::vector<std::string> all_spellings() {
  std::vector<std::string> all = spellings();
  for (const placement::PolicyInfo& row : placement::policy_table()) {
    all.push_back(std::string(row.name) + "+2*first-fit");
    all.push_back("best-fit+" + std::string(row.name));
  }
  return all;
}

// Passes a policy on and records the smallest and largest score it gave.
class Watched final : public Policy {
 public:
  explicit Watched(std::unique_ptr<Policy> policy) : policy_(std::move(policy)) {}

  Score score(const placement::Candidate& node, const placement::PodShape& pod) const override {
    return watched(policy_->score(node, pod));
  }
  Score tie_score(const placement::Candidate& node, const placement::PodShape& pod) const override {
    return watched(policy_->tie_score(node, pod));
  }
  placement::TieRule tie_rule() const override { return policy_->tie_rule(); }
  int share_device(const placement::Candidate& node, const placement::PodShape& pod,
                   std::uint64_t draw) const override {
    return policy_->share_device(node, pod, draw);
  }

 private:
  static Score watched(Score score) {
    if (score < 0 || score > placement::kMaxScore) fail("score " + std::to_string(score));
    return score;
  }
  std::unique_ptr<Policy> policy_;
};

// One cluster under a policy, and a plain book of what was placed where.
class Watch {
 public:
  Watch(const Scenario& scenario, const std::string& policy) {
    for (const RankedNode& node : scenario.nodes) {
      const auto id = cluster_.add_node(node.spec, node.rank);
      if (!id) fail(id.message());
      ids_.push_back(*id);
      book_.push_back({node.spec, node.rank, {}});
    }
    typical_ = std::make_unique<placement::TypicalPods>(scenario.workload, cluster_);
    auto made = placement::make_policy(policy, *typical_);
    if (!made) fail(made.message());
    engine_ = std::make_unique<Engine>(cluster_, std::make_unique<Watched>(*std::move(made)), scenario.seed);
  }

  /// Plans and commits one pod; where it went, for comparison with another run.
  std::string arrive(const PodRequest& pod) {
    std::vector<NodeAnswer> answers;
    const Decision decision = engine_->plan(pod, ids_, &answers);
    for (const NodeAnswer& answer : answers) {
      const Reason expected = reference::why_not(book_[answer.node.index()], pod);
      if (answer.reason != expected) fail("node " + std::to_string(answer.node.index()) + ": wrong reason");
    }
    const auto* placed = std::get_if<Placed>(&decision);
    if (placed == nullptr) {
      for (const reference::Node& node : book_) {
        if (reference::why_not(node, pod) == Reason::kNone) fail("rejected, but a node is feasible");
      }
      return "rejected";
    }
    reference::Node& node = book_[placed->node.index()];
    if (reference::why_not(node, pod) != Reason::kNone) fail("an infeasible node was chosen");
    if (!reference::can_hold(node, pod, to_list(placed->devices))) fail("a device is given more than it has");
    const auto id = engine_->commit(pod, *placed);
    if (!id) fail(id.message());
    node.pods.push_back({tickets_, pod, to_list(placed->devices)});
    held_.push_back({*id, tickets_++, placed->node.index()});
    return to_text(decision);
  }

  void depart(std::uint32_t which) {
    if (held_.empty()) return;
    const Held held = held_[which % held_.size()];
    held_.erase(held_.begin() + which % static_cast<std::ptrdiff_t>(held_.size()));
    std::erase_if(book_[held.node].pods, [&](const auto& pod) { return pod.ticket == held.ticket; });
    if (!cluster_.release(held.id)) fail("release refused");
  }

  void check() const {
    const Status sound = cluster_.check();
    if (!sound) fail(sound.message());
  }

 private:
  ClusterState cluster_;
  std::unique_ptr<placement::TypicalPods> typical_;
  std::unique_ptr<Engine> engine_;
  std::vector<NodeId> ids_;
  std::vector<reference::Node> book_;
  std::vector<Held> held_;
  std::uint64_t tickets_ = 0;
};

class PolicyContract : public testing::TestWithParam<std::string> {};

TEST_P(PolicyContract, ScoresInRangePlacesOnlyWherePossibleAndRepeatsItself) {
  test::for_all(100, [&] {
    const Scenario scenario = any_scenario();
    Watch one(scenario, GetParam());
    Watch two(scenario, GetParam());
    std::uint64_t names = 0;
    for (const Event& event : scenario.events) {
      if (!event.arrival) {
        one.depart(event.which);
        two.depart(event.which);
        continue;
      }
      for (std::uint32_t i = 0; i < event.copies; ++i) {
        PodRequest pod = event.pod;
        pod.name = "pod-" + std::to_string(names++);
        RC_ASSERT(one.arrive(pod) == two.arrive(pod));
      }
      one.check();
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Table, PolicyContract, testing::ValuesIn(all_spellings()),
                         [](const auto& each) { return case_name(each.param); });

// The two spellings decide alike.
void expect_alike(const std::string& one, const std::string& other) {
  test::for_all(50, [&] {
    const Scenario scenario = any_scenario();
    RC_LOG() << one << " and " << other;
    Watch first(scenario, one);
    Watch second(scenario, other);
    std::uint64_t names = 0;
    for (const Event& event : scenario.events) {
      if (!event.arrival) {
        first.depart(event.which);
        second.depart(event.which);
        continue;
      }
      PodRequest pod = event.pod;
      pod.name = "pod-" + std::to_string(names++);
      RC_ASSERT(first.arrive(pod) == second.arrive(pod));
    }
  });
}

TEST(WeightedSum, OfAPolicyWithItselfIsThatPolicy) {
  for (const std::string& spelling : spellings()) expect_alike(spelling, spelling + "+2*" + spelling);
}

// first-fit scores all nodes alike, so only the other term tells nodes apart. Ties and devices are the first term's.
TEST(WeightedSum, AddingAPolicyThatLikesAllNodesChangesNothing) {
  for (const std::string& spelling : spellings()) {
    // Points of a step are too narrow to survive the division by the weights.
    if (spelling.find("step=") == std::string::npos) expect_alike(spelling, "3*" + spelling + "+first-fit");
  }
}

TEST(WeightedSum, OrdersNodesByTheWeightedScores) {
  test::for_all(200, [] {
    const Scenario scenario = any_scenario();
    Twin twin(scenario, "first-fit");
    const placement::TypicalPods typical(scenario.workload, twin.cluster());
    const auto engine = [&](const char* spelling) {
      return std::make_unique<Engine>(twin.cluster(), *placement::make_policy(spelling, typical), scenario.seed);
    };
    const auto one = engine("best-fit");
    const auto other = engine("gpu-packing");
    const auto sum = engine("2*best-fit+5*gpu-packing");
    std::vector<NodeId> nodes;
    for (std::uint32_t i = 0; i < scenario.nodes.size(); ++i) nodes.push_back(NodeId{i});
    for (const Event& event : scenario.events) {
      twin.run(event);
      std::vector<NodeAnswer> ones;
      std::vector<NodeAnswer> others;
      std::vector<NodeAnswer> sums;
      one->plan(event.pod, nodes, &ones);
      other->plan(event.pod, nodes, &others);
      sum->plan(event.pod, nodes, &sums);
      const auto weighted = [&](std::size_t i) { return 2 * ones[i].score + 5 * others[i].score; };
      for (std::size_t a = 0; a < nodes.size(); ++a) {
        for (std::size_t b = 0; b < nodes.size(); ++b) {
          if (sums[a].reason != Reason::kNone || sums[b].reason != Reason::kNone) continue;
          RC_ASSERT((weighted(a) < weighted(b)) == (sums[a].score < sums[b].score));
        }
      }
    }
  });
}

TEST(PolicyTable, RowsAreNamedOnceAndCanBeMade) {
  std::set<std::string_view> names;
  const placement::TypicalPods typical;
  for (const placement::PolicyInfo& row : placement::policy_table()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.description.empty()) << row.name;
    EXPECT_TRUE(placement::make_policy(row.name, typical).ok()) << row.name;
    EXPECT_TRUE(row.own || reference::parse_rules(row.name)) << row.name << " is published, but has no reference";
  }
  for (const char* published :
       {"random", "first-fit", "best-fit", "dot-product", "gpu-packing", "gpu-clustering", "fgd"}) {
    EXPECT_TRUE(names.contains(published)) << published;
  }
}

TEST(PolicyTable, AnUnknownNameIsAnsweredWithTheKnownOnes) {
  for (const char* wrong :
       {"", "fdg", "fgd+", "+fgd", "fgd:tie", "fgd:tie=", "fgd:tie=worst", "fgd:step=0", "fgd:step=x", "fgd:step=-1",
        "fgd:color=red", "best-fit:tie=random", "0*fgd", "-1*fgd+random", "x*fgd", "fgd+nothing", "FGD", " fgd"}) {
    const auto made = placement::make_policy(wrong, placement::TypicalPods());
    EXPECT_FALSE(made.ok()) << "'" << wrong << "' was accepted";
    if (!made) {
      EXPECT_EQ(made.message().find('\n'), std::string::npos) << made.message();
    }
  }
  const auto made = placement::make_policy("fdg", placement::TypicalPods());
  ASSERT_FALSE(made.ok());
  for (const placement::PolicyInfo& row : placement::policy_table()) {
    EXPECT_NE(made.message().find(row.name), std::string::npos) << made.message();
  }
}

}  // namespace
}  // namespace mortise::property
