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

TEST(Startup, ACatalogueThatIsNotThereIsNamed) {
  StartOptions options;
  options.cluster = "dgx-1v:2";
  options.catalogue = "/nonexistent/topologies";
  const auto loaded = load(options);
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.message(), HasSubstr("/nonexistent/topologies: No such file or directory"));
}

TEST(Startup, LevelsOfTheFlagReplaceThoseOfTheLabels) {
  StartOptions options;
  options.cluster = "dgx-1v:2";
  EXPECT_FALSE(load(options)->domains->find_level("machine"));
  options.levels = "machine=nvidia.com/gpu.product,row=example.com/row";
  const auto loaded = load(options);
  ASSERT_TRUE(loaded.ok()) << loaded.message();
  EXPECT_EQ(loaded->domains->find_level("machine"), 0);
  EXPECT_EQ(loaded->domains->find_level("rack"), std::nullopt);
  // Both nodes are of one product.
  loaded->domains->refresh();
  EXPECT_EQ(loaded->domains->at_level(0).size(), 1U);
  EXPECT_THAT(loaded->notes, testing::Contains(HasSubstr("no node has the label \"example.com/row\"")));
  options.levels = "row";
  EXPECT_THAT(load(options).message(), HasSubstr("is not NAME=LABEL"));
}

}  // namespace
}  // namespace mortise::extender
