#include "scheduler/topology/kubelet_config.h"

#include <gtest/gtest.h>

namespace mortise::topology {
namespace {

TEST(KubeletConfig, PolicyNamesAreKubelets) {
  EXPECT_EQ(*parse_topology_policy("single-numa-node"), TopologyPolicy::kSingleNumaNode);
  EXPECT_EQ(to_text(TopologyPolicy::kBestEffort), "best-effort");
  const auto wrong = parse_topology_policy("strict");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.message(),
            "unknown topology manager policy \"strict\"; known: none, best-effort, restricted, single-numa-node");
}

TEST(KubeletConfig, ReleasesSwitchTheRules) {
  EXPECT_FALSE(rules_of_release("1.23")->equal_masks);
  EXPECT_TRUE(rules_of_release("1.24")->equal_masks);
  EXPECT_FALSE(rules_of_release("v1.35.4")->device_nodes_only);
  EXPECT_TRUE(rules_of_release("1.36")->device_nodes_only);
  EXPECT_FALSE(rules_of_release("1.36")->keep_assigned_cpus);
  EXPECT_TRUE(rules_of_release("v1.37.2")->keep_assigned_cpus);
  for (const char* wrong : {"", "1", "2.1", "1.x", "latest"}) EXPECT_FALSE(rules_of_release(wrong).ok()) << wrong;
}

TEST(KubeletConfig, OptionsAreReadAsKubeletReadsThem) {
  KubeletConfig config;
  EXPECT_TRUE(set_topology_option(config, "prefer-closest-numa-nodes", "T").ok());
  EXPECT_TRUE(config.prefer_closest);
  EXPECT_TRUE(set_topology_option(config, "max-allowable-numa-nodes", "12").ok());
  EXPECT_EQ(config.max_allowable_numa_nodes, 12);
  EXPECT_TRUE(set_cpu_option(config, "full-pcpus-only", "true").ok());
  EXPECT_TRUE(config.cpu.full_pcpus_only);
  EXPECT_TRUE(set_cpu_option(config, "strict-cpu-reservation", "true").ok());
  EXPECT_FALSE(set_topology_option(config, "prefer-closest-numa-nodes", "yes").ok());
  // Kubelet refuses less than its default of 8.
  EXPECT_FALSE(set_topology_option(config, "max-allowable-numa-nodes", "7").ok());
  EXPECT_FALSE(set_cpu_option(config, "full-pcpu-only", "true").ok());
}

TEST(KubeletConfig, OptionsThatExcludeEachOtherAreRefused) {
  KubeletConfig config;
  config.cpu_static = true;
  config.cpu.full_pcpus_only = true;
  EXPECT_TRUE(check(config).ok());
  config.cpu.distribute_across_cores = true;
  EXPECT_EQ(check(config).message(),
            "kubelet does not start with both full-pcpus-only and distribute-cpus-across-cores");
  config.cpu = {};
  config.cpu.align_by_socket = true;
  config.policy = TopologyPolicy::kSingleNumaNode;
  EXPECT_FALSE(check(config).ok());
}

}  // namespace
}  // namespace mortise::topology
