#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "scheduler/kube/objects/cluster_file.h"
#include "tests/unit/kube/temp_file.h"

namespace mortise::kube {
namespace {

using mortise::test::TempFile;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::string refusal(const std::string& content) {
  const TempFile file(content);
  const auto ranks = load_node_ranks(file.path());
  return ranks.ok() ? "accepted" : ranks.message().substr(file.path().size());
}

TEST(NodeRanksOf, EachLineIsANameAndARank) {
  const TempFile file("b 7\r\na\t18446744073709551615\n\n  節点 0  \n");
  const auto ranks = load_node_ranks(file.path());
  ASSERT_TRUE(ranks.ok()) << ranks.message();
  EXPECT_THAT(*ranks, ElementsAre(Pair("a", 18446744073709551615U), Pair("b", 7U), Pair("節点", 0U)));
}

TEST(NodeRanksOf, MistakesAreRefusedWithTheirLine) {
  EXPECT_EQ(refusal("a 1\nb\n"), ":2: \"b\" is not a node name and its rank (a whole number, 0 or more)");
  EXPECT_THAT(refusal("a 1\nb 2 c\n"), HasSubstr(":2: \"b 2 c\" is not"));
  EXPECT_THAT(refusal("a -1\n"), HasSubstr(":1: "));
  EXPECT_THAT(refusal("a 1.5\n"), HasSubstr(":1: "));
  EXPECT_THAT(refusal("a 18446744073709551616\n"), HasSubstr(":1: "));
  EXPECT_EQ(refusal("a 1\nb 2\na 3\n"), ":3: node \"a\" appears twice; each name may appear once");
  EXPECT_THAT(refusal("\n"), HasSubstr("no node ranks in the file"));
  EXPECT_THAT(load_node_ranks("/nonexistent").message(), HasSubstr("/nonexistent: cannot be read"));
}

TEST(SeededRank, DependsOnSeedAndNameOnly) {
  EXPECT_EQ(seeded_rank(42, "n-1"), seeded_rank(42, "n-1"));
  EXPECT_NE(seeded_rank(42, "n-1"), seeded_rank(43, "n-1"));
  std::set<std::uint64_t> ranks;
  for (int i = 0; i < 10'000; ++i) ranks.insert(seeded_rank(42, "node-" + std::to_string(i)));
  EXPECT_EQ(ranks.size(), 10'000U);
}

TEST(SeededRank, AnyNodeMayComeFirst) {
  // Over 1,000 seeds each of four names should be first about 250 times; 6 standard deviations are 82.
  int first_is_a = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    bool first = true;
    for (const char* other : {"b", "c", "d"}) first = first && seeded_rank(seed, "a") < seeded_rank(seed, other);
    first_is_a += first ? 1 : 0;
  }
  EXPECT_NEAR(first_is_a, 250, 82);
}

}  // namespace
}  // namespace mortise::kube
