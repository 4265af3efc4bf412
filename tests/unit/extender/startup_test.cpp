#include "scheduler/extender/startup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace mortise::extender
