#include "scheduler/extender/startup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "tests/support/tree.h"

namespace mortise::extender {
namespace {

using testing::HasSubstr;

TEST(Startup, MachinesOfTheCatalogueAreServedUnderTheNamesOfNodeLabels) {
  StartOptions options;
  options.cluster = "dgx-1v:2,t4-2:1";
  const auto loaded = load(options);
  ASSERT_TRUE(loaded.ok()) << loaded.message();
  EXPECT_EQ(loaded->state->totals().nodes, 3);
  EXPECT_EQ(loaded->state->totals().gpus, 18);
  const auto node = loaded->state->find_node("dgx-1v-0001");
  ASSERT_TRUE(node.has_value());
  EXPECT_EQ(loaded->state->model_name(loaded->state->machine_of(*node).model), "Tesla-V100-SXM2-32GB");
}

TEST(Startup, ThePoolFileThatIsShippedIsServed) {
  StartOptions options;
  options.cluster = mortise::test::source_dir() + "/config/clusters/mixed-v100.yaml";
  const auto loaded = load(options);
  ASSERT_TRUE(loaded.ok()) << loaded.message();
  EXPECT_EQ(loaded->state->totals().gpus, 512);
}

TEST(Startup, LevelsThatAreNamedAreTheOnesThatGangsMayAskFor) {
  StartOptions options;
  options.cluster = "dgx-1v:2";
  options.levels = "row=example.com/row,rack=example.com/rack";
  const auto loaded = load(options);
  ASSERT_TRUE(loaded.ok()) << loaded.message();
  EXPECT_EQ(loaded->domains->find_level("row"), 0);
  EXPECT_EQ(loaded->domains->find_level("example.com/rack"), 1);
  EXPECT_FALSE(loaded->domains->find_level("zone").has_value());
  options.levels = "row";
  EXPECT_THAT(load(options).message(), HasSubstr("--levels \"row\": \"row\" is not NAME=LABEL"));
}

TEST(Startup, ACatalogueThatIsNotThereIsNamed) {
  StartOptions options;
  options.cluster = "dgx-1v:2";
  options.catalogue = "/nonexistent/topologies";
  const auto loaded = load(options);
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.message(), HasSubstr("/nonexistent/topologies: No such file or directory"));
}

/// Two nodes of one row, a Volcano PodGroup of two, and one member of it on a node.
std::string snapshot() {
  const std::string path = testing::TempDir() + "mortise-startup-" + std::to_string(getpid()) + ".json";
  const auto node = [](const std::string& name) {
    return R"({"kind":"Node","metadata":{"name":")" + name + R"(","labels":{"example.com/row":"r"}},"status":{)" +
           R"("allocatable":{"cpu":"8","memory":"8Gi","pods":"110","nvidia.com/gpu":"8"}}},)";
  };
  std::ofstream(path)
      << R"({"kind":"List","items":[)" + node("a") + node("b") +
             R"({"kind":"Pod","metadata":{"namespace":"d","name":"g-0","uid":"u0","annotations":)"
             R"({"scheduling.k8s.io/group-name":"g"}},"spec":{"nodeName":"a","containers":[{"name":"c",)"
             R"("resources":{"limits":{"nvidia.com/gpu":"8"}}}]},"status":{"phase":"Running"}},)"
             R"({"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":)"
             R"({"namespace":"d","name":"g"},"spec":{"minMember":2}}]})";
  return path;
}

TEST(Startup, LevelsOfTheFlagReplaceThoseOfTheLabels) {
  StartOptions options;
  options.cluster = snapshot();
  EXPECT_FALSE(load(options)->domains->find_level("row"));
  options.levels = "row=example.com/row,rack=example.com/rack";
  const auto loaded = load(options);
  ASSERT_TRUE(loaded.ok()) << loaded.message();
  EXPECT_EQ(loaded->domains->find_level("row"), 0);
  loaded->domains->refresh();
  EXPECT_EQ(loaded->domains->at_level(0).size(), 1U);
  EXPECT_THAT(loaded->notes, testing::ElementsAre(HasSubstr("no node has the label \"example.com/rack\"")));
  options.levels = "row";
  EXPECT_THAT(load(options).message(), HasSubstr("is not NAME=LABEL"));
}

TEST(Startup, GangsOfTheFileAreKnownWithTheirBoundMembers) {
  StartOptions options;
  options.cluster = snapshot();
  const auto loaded = load(options);
  ASSERT_TRUE(loaded.ok()) << loaded.message();
  const ManualClock clock;
  Gangs gangs(*loaded->bookings, *loaded->state, *loaded->domains, *loaded->gang_policy, 1, clock);
  GangFeed feed(gangs);
  tell_gangs(*loaded, feed);
  ASSERT_EQ(gangs.gangs().size(), 1U);
  const GangRecord& gang = gangs.gangs().begin()->second;
  EXPECT_EQ(gang.spec.minimum, 2);
  EXPECT_EQ(gangs.tally(gang).bound, 1);
  EXPECT_EQ(gangs.phase(gang), GangPhase::kDegraded);
}

}  // namespace
}  // namespace mortise::extender
