// What mortise explain says against a gang, and what would help.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/unit/sim/explain_fixture.h"

namespace mortise::sim {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// The rule of the extender: what a part asks for holds for the whole gang.
TEST_F(Explain, ADomainForEachPartIsAskedOfTheWhole) {
  std::vector<json> pods = gang("g", 2, 8);
  for (std::size_t i = 0; i < 2; ++i) {
    pods[i]["metadata"]["annotations"]["alpha.jobset.sigs.k8s.io/exclusive-topology"] = "rack";
    pods[i]["metadata"]["labels"]["jobset.sigs.k8s.io/job-key"] = "job" + std::to_string(i);
  }
  const json apart = explain({in_rack("a", 8, "r1"), in_rack("b", 8, "r2")}, pods);
  EXPECT_EQ(apart.at("reasons")[0].at("reason"), "GangNeverFits");
  EXPECT_EQ(explain({in_rack("a", 8, "r1"), in_rack("b", 8, "r1")}, pods).at("domain"), "r1");
}

TEST_F(Explain, MembersThatContradictOneAnotherAreRefusedInTheWordsOfTheExtender) {
  const auto reason = [&](const std::vector<json>& pods) {
    const json answer = explain({in_rack("a", 8, "r1")}, pods);
    return answer.at("reasons")[0].at("reason").get<std::string>() + ": " +
           answer.at("reasons")[0].at("detail").get<std::string>();
  };
  std::vector<json> pods = gang("g", 2, 1);
  pods[1]["spec"]["priority"] = 5;
  EXPECT_EQ(reason(pods),
            "GangInvalid: members of one gang have priorities 0 and 5; give them one, or their group a priority class");
  EXPECT_EQ(reason({member("a", "g", 2, 1), member("b", "g", 3, 1)}),
            "GangInvalid: members say that 2 and that 3 must start together; give all of them one minimum");
  pods = gang("g", 2, 1, "rack");
  pods[1]["metadata"]["annotations"]["mortise.dev/topology-required"] = "node";
  EXPECT_EQ(reason(pods), "GangInvalid: it must be in one node and in one rack; one level may be required");
}

TEST_F(Explain, MembersThatAreOnlyInTheSnapshotCountAndPinTheDomain) {
  const std::vector<json> pods = gang("g", 3, 8, "rack");
  const std::vector<json> waiting = {pods[1], pods[2]};
  const json answer = explain({in_rack("a", 8, "r1"), in_rack("b", 8, "r1"), in_rack("c", 8, "r2"),
                               in_rack("d", 8, "r2"), on_node(pods[0], "a")},
                              waiting);
  // r2 has room for both; the rack of g0 for one.
  EXPECT_EQ(answer.at("members"), 3);
  EXPECT_EQ(answer.at("reasons")[0].at("detail"),
            "needs 2 x 8 GPUs in one rack; rack r1, where members of it are, has room for 1");
  // With fewer it would be below its minimum of three, of which one runs.
  EXPECT_EQ(change(answer, "fewer_members"), "");
}

TEST_F(Explain, WhatEveryNodeLacksForOneMemberIsNamed) {
  const json cpu = explain({node("a", 8), node("b", 8)}, {member("p", "g", 2, 1, "70"), member("q", "g", 2, 1, "70")});
  EXPECT_EQ(cpu.at("reasons")[1].at("reason"), "NodeTooSmall");
  EXPECT_EQ(cpu.at("reasons")[1].at("detail"), "2 nodes for one member");
  EXPECT_EQ(cpu.at("nearest")[0].at("missing"), "6000 milli-CPU");
  std::vector<json> picky = gang("g", 2, 8);
  for (json& made : picky) made["spec"]["nodeSelector"] = {{"nvidia.com/gpu.product", "H100"}};
  const json a100 = node("a", 8, {{"nvidia.com/gpu.product", "A100"}});
  json other = node("b", 8, {{"nvidia.com/gpu.product", "A100"}});
  const json model = explain({a100, other}, picky);
  EXPECT_EQ(model.at("reasons")[1].at("reason"), "GpuModel");
  EXPECT_THAT(change(model, "relax"), StartsWith("without its choice of a GPU model it fits"));
  for (json& made : picky) made["spec"]["nodeSelector"] = {{"disk", "ssd"}};
  EXPECT_THAT(change(explain({a100, other}, picky), "relax"), StartsWith("without its nodeSelector it fits"));
}

TEST_F(Explain, CordonedNodesThatWouldHaveRoomAreNamed) {
  std::vector<json> nodes = {node("a", 8), node("b", 8)};
  nodes[1]["spec"]["unschedulable"] = true;
  const json answer = explain(nodes, gang("g", 2, 8));
  EXPECT_EQ(change(answer, "uncordon"), "with b uncordoned it fits across the cluster");
  // They are as they were for what is asked about next.
  std::vector<json> both = gang("g", 2, 8);
  both.push_back(pod("p", 8));
  EXPECT_EQ(places(explain(nodes, both).at("answers")[1]), (std::vector<std::string>{"x/p a 0,1,2,3,4,5,6,7"}));
}

TEST_F(Explain, APlanOfSomeMembersSaysHowManyOfHowManyAndTheMinimum) {
  write_list("cluster.json", {node("a", 8)});
  std::vector<json> pods;
  for (int i = 0; i < 3; ++i) pods.push_back(member("g" + std::to_string(i), "g", 1, 4));
  for (json& made : pods) made["metadata"]["annotations"]["mortise.dev/gang-min-member"] = "2";
  write_list("pods.json", pods);
  EXPECT_THAT(run({"--cluster", path("cluster.json"), "--pod", path("pods.json")}).out,
              HasSubstr("3 members: fits with 2 of 3 (it needs 2) in node a"));
}

// Two of four must start together: to do with fewer is no help.
TEST_F(Explain, NoChangeGoesBelowAMinimumThatIsNotAllMembers) {
  std::vector<json> pods;
  for (int i = 0; i < 4; ++i) pods.push_back(member("g" + std::to_string(i), "g", 2, 8));
  EXPECT_EQ(change(explain({node("a", 8)}, pods), "fewer_members"), "");
  EXPECT_NE(change(explain({node("a", 8)}, gang("h", 2, 8)), "fewer_members"), "");
}

TEST_F(Explain, AWorkloadBesidePodsIsLeftOutWithANote) {
  const json job = {
      {"apiVersion", "batch/v1"}, {"kind", "Job"}, {"metadata", {{"name", "j"}}}, {"spec", json::object()}};
  (void)explain({node("a", 8)}, {pod("p", 1), job});
  EXPECT_THAT(ran_.err, HasSubstr("note: workloads are left out, as the file has Pods"));
  json own = pod("j-0", 1);
  own["metadata"]["labels"]["batch.kubernetes.io/job-name"] = "j";
  (void)explain({node("a", 8)}, {own, job});
  EXPECT_THAT(ran_.err, testing::Not(HasSubstr("note: workloads")));
}

}  // namespace
}  // namespace mortise::sim
