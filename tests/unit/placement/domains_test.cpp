#include "scheduler/placement/domains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/base/rng.h"

namespace mortise::placement {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kZone = "topology.kubernetes.io/zone";
const std::string kRack = "oci.oraclecloud.com/host.rack_id";
const std::string kBlock = "oci.oraclecloud.com/host.network_block_id";

class DomainsTest : public testing::Test {
 protected:
  NodeId node(const std::string& name, const std::vector<Label>& labels, int gpus = 8) {
    NodeSpec spec;
    spec.name = name;
    spec.cpu = 64'000;
    spec.memory = 1;
    spec.pods = 100;
    spec.gpus = gpus;
    const NodeId id = *cluster.add_node(spec, cluster.node_count());
    domains.set_node(id, labels);
    return id;
  }

  std::vector<std::string> names(int level) {
    domains.refresh();
    std::vector<std::string> found;
    for (const DomainId id : domains.at_level(level)) found.push_back(domains.path(id));
    return found;
  }

  std::vector<std::string> level_names() {
    domains.refresh();
    std::vector<std::string> found;
    for (const TopologyLevel& level : domains.levels()) found.push_back(level.name);
    return found;
  }

  AllocationId take(NodeId on, int gpus) {
    PodRequest pod;
    pod.gpus = gpus;
    DeviceSet devices;
    for (int i = 0; i < gpus; ++i) devices.insert(i);
    return *cluster.apply(cluster.intern(pod), on, devices);
  }

  ClusterState cluster;
  Domains domains{cluster};
};

TEST_F(DomainsTest, LevelsAreThoseOfTheLabelsThatNodesCarry) {
  node("a", {{kZone, "z"}, {kRack, "r"}, {"kubernetes.io/hostname", "a"}, {"color", "blue"}});
  EXPECT_THAT(level_names(), ElementsAre("zone", "rack"));
  node("b", {{kZone, "z"}, {kRack, "r"}, {kBlock, "b"}, {"nvidia.com/gpu.clique", "u.1"}});
  EXPECT_THAT(level_names(), ElementsAre("zone", "network-block", "rack", "clique"));
}

TEST_F(DomainsTest, OfTwoNetworkHierarchiesTheOneOnMoreNodesIsTaken) {
  node("a", {{"fabric.topograph.run/tier-1", "s"}, {"fabric.topograph.run/tier-0", "l"}});
  const NodeId b = node("b", {{kBlock, "x"}});
  node("c", {{kBlock, "x"}});
  EXPECT_THAT(level_names(), ElementsAre("network-block"));
  domains.remove_node(b);  // one each: the first in the table
  EXPECT_THAT(level_names(), ElementsAre("tier-1", "tier-0"));
}

TEST_F(DomainsTest, WithoutLabelsEveryNodeIsInTheCluster) {
  node("a", {});
  node("b", {{"rack", "r"}});
  EXPECT_THAT(level_names(), IsEmpty());
  EXPECT_EQ(domains.domain(Domains::root()).node_count, 2);
  EXPECT_EQ(domains.find_level("node"), 0);
  EXPECT_EQ(domains.find_level("kubernetes.io/hostname"), 0);
  EXPECT_EQ(domains.find_level("rack"), std::nullopt);
}

// The same rack name in two blocks is two racks.
TEST_F(DomainsTest, DomainsAreToldApartByTheirWholePath) {
  node("a", {{kBlock, "b1"}, {kRack, "rack-a"}});
  node("b", {{kBlock, "b2"}, {kRack, "rack-a"}});
  EXPECT_THAT(names(1), ElementsAre("b1/rack-a", "b2/rack-a"));
}

// A path is compared part by part: "rack-a" is no ancestor of what is under "rack-ab".
TEST_F(DomainsTest, ANameThatBeginsLikeAnotherIsAnother) {
  const NodeId a = node("a", {{kBlock, "b1"}, {kRack, "rack-a"}});
  const NodeId b = node("b", {{kBlock, "b1"}, {kRack, "rack-ab"}});
  const NodeId c = node("c", {{kBlock, "b1/rack-a"}, {kRack, "x"}});
  domains.refresh();
  EXPECT_NE(domains.domain_of(a, 1), domains.domain_of(b, 1));
  EXPECT_EQ(domains.domain_of(a, 0), domains.domain_of(b, 0));
  EXPECT_NE(domains.domain_of(a, 0), domains.domain_of(c, 0));
}

TEST_F(DomainsTest, NodesThatLackALabelAreNotJoined) {
  const NodeId a = node("a", {{kBlock, "b1"}});
  const NodeId b = node("b", {{kBlock, "b1"}});
  const NodeId c = node("c", {{kBlock, "b1"}, {kRack, "a"}});  // a rack that is called as a node is
  const NodeId d = node("d", {{kRack, ""}});                   // an empty value says nothing
  domains.refresh();
  EXPECT_EQ(domains.domain_of(a, 0), domains.domain_of(b, 0));
  EXPECT_NE(domains.domain_of(a, 1), domains.domain_of(b, 1));
  EXPECT_NE(domains.domain_of(a, 1), domains.domain_of(c, 1));
  EXPECT_NE(domains.domain_of(a, 0), domains.domain_of(d, 0));
}

// The label of the host says something else than the node's name: the name counts.
TEST_F(DomainsTest, HostnameLabelsDoNotJoinNodes) {
  Domains configured(cluster, {{"rack", "rack"}, {"host", "kubernetes.io/hostname"}});
  const NodeId a = node("a", {});
  const NodeId b = node("b", {});
  for (const NodeId id : {a, b}) {
    configured.set_node(id, std::vector<Label>{{"rack", "r"}, {"kubernetes.io/hostname", "same"}});
  }
  configured.refresh();
  EXPECT_EQ(configured.node_level(), 1);
  EXPECT_EQ(configured.find_level("kubernetes.io/hostname"), 1);
  EXPECT_EQ(configured.domain(configured.domain_of(a, 0)).node_count, 2);
}

TEST_F(DomainsTest, SumsFollowPodsNodesAndLabels) {
  const NodeId a = node("a", {{kBlock, "b"}, {kRack, "r1"}});
  const NodeId b = node("b", {{kBlock, "b"}, {kRack, "r2"}}, 4);
  domains.refresh();
  const auto free_of = [&](NodeId id, int level) { return domains.domain(domains.domain_of(id, level)).free_gpus; };
  EXPECT_EQ(free_of(a, 0), 12);
  const AllocationId pod = take(a, 3);
  domains.refresh();
  EXPECT_EQ(free_of(a, 1), 5);
  EXPECT_EQ(free_of(b, 0), 9);
  domains.set_node(b, std::vector<Label>{{kBlock, "b"}, {kRack, "r1"}});
  domains.refresh();
  EXPECT_EQ(free_of(a, 1), 9);
  EXPECT_THAT(names(1), ElementsAre("b/r1"));
  ASSERT_TRUE(cluster.release(pod).ok());
  domains.remove_node(b);
  ASSERT_TRUE(cluster.remove_node(b).ok());
  domains.refresh();
  EXPECT_EQ(free_of(a, 0), 8);
  EXPECT_TRUE(domains.check().ok());
}

TEST_F(DomainsTest, SumsAreRightAfterAnyHistory) {
  Rng rng(7);
  std::vector<NodeId> nodes;
  std::vector<AllocationId> pods;
  for (int step = 0; step < 2000; ++step) {
    if (nodes.size() < 20 || rng.below(10) == 0) {
      std::vector<Label> labels;
      if (rng.below(5) > 0) labels.emplace_back(kBlock, "b" + std::to_string(rng.below(2)));
      if (rng.below(5) > 0) labels.emplace_back(kRack, "r" + std::to_string(rng.below(3)));
      if (nodes.size() < 20) {
        nodes.push_back(node("n" + std::to_string(step), labels));
      } else {
        domains.set_node(nodes[rng.below(nodes.size())], labels);
      }
    }
    const NodeId on = nodes[rng.below(nodes.size())];
    if (cluster.state_of(on).whole_free() == 8) pods.push_back(take(on, 1 + static_cast<int>(rng.below(8))));
    if (pods.size() > 10) {
      ASSERT_TRUE(cluster.release(pods.front()).ok());
      pods.erase(pods.begin());
    }
    if (rng.below(8) != 0) continue;
    domains.refresh();
    const Status status = domains.check();
    ASSERT_TRUE(status.ok()) << status.message();
  }
}

TEST(TopologyLevels, ConfiguredOnesAreChecked) {
  const auto refusal = [](std::vector<TopologyLevel> levels) {
    const Status status = check_levels(levels);
    return status.ok() ? std::string() : status.message();
  };
  EXPECT_EQ(refusal({{"rack", "r"}, {"host", "kubernetes.io/hostname"}}), "");
  EXPECT_THAT(refusal({{"host", "kubernetes.io/hostname"}, {"rack", "r"}}), HasSubstr("must be the last"));
  EXPECT_THAT(refusal({{"rack", "r"}, {"rack", "s"}}), HasSubstr("'rack' is there twice"));
  EXPECT_THAT(refusal({{"rack", "r"}, {"row", "r"}}), HasSubstr("label 'r' is there twice"));
  EXPECT_THAT(refusal({{"rack", ""}}), HasSubstr("level 1: needs a name"));
  EXPECT_THAT(refusal({{"node", "r"}}), HasSubstr("single nodes"));
  std::vector<TopologyLevel> many;
  for (int i = 0; i < 17; ++i) many.push_back({std::to_string(i), std::to_string(i)});
  EXPECT_THAT(refusal(many), HasSubstr("17 levels; at most 16"));
}

TEST(TopologyLevels, AnOptionNamesThemCoarseToFine) {
  EXPECT_TRUE(parse_levels("")->empty());
  EXPECT_EQ(*parse_levels("row=example.com/row,rack=r"),
            (std::vector<TopologyLevel>{{"row", "example.com/row"}, {"rack", "r"}}));
  EXPECT_THAT(parse_levels("rack").message(), HasSubstr("--levels \"rack\": \"rack\" is not NAME=LABEL"));
  EXPECT_THAT(parse_levels("rack=a,").message(), HasSubstr("\"\" is not NAME=LABEL"));
  EXPECT_THAT(parse_levels("rack=a,rack=b").message(), HasSubstr("the name 'rack' is there twice"));
  EXPECT_THAT(parse_levels("rack=").message(), HasSubstr("needs a name and the key of a node label"));
}

}  // namespace
}  // namespace mortise::placement
