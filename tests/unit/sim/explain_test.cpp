// mortise explain, through the program's own entry: pods and gangs on clusters small enough to see what is right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/unit/sim/explain_fixture.h"

namespace mortise::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

// --- pods -------------------------------------------------------------------------------------------------------

TEST_F(Explain, APodThatFitsHasANodeAndDevices) {
  const json answer = explain({node("n1", 8), on_node(pod("old", 3), "n1")}, {pod("p", 4)});
  EXPECT_EQ(answer.at("pod"), "x/p");
  EXPECT_THAT(places(answer), ElementsAre("x/p n1 3,4,5,6"));
  EXPECT_TRUE(answer.at("reasons").empty());
}

TEST_F(Explain, APodThatDoesNotFitHasReasonsTheNearestAndChanges) {
  // n1 has 5 of 8 free, n2 2 of 8, n3 has 4 in all. old3 is the only pod whose GPUs suffice on n1.
  const json answer = explain(
      {node("n1", 8), node("n2", 8), node("n3", 4), on_node(pod("old3", 3), "n1"), on_node(pod("old6", 6), "n2")},
      {pod("p", 8)});
  EXPECT_FALSE(answer.at("fits").get<bool>());
  EXPECT_EQ(answer.at("reasons"),
            json::parse(R"([{"reason":"InsufficientGpu","nodes":2},{"reason":"TooFewGpus","nodes":1}])"));
  EXPECT_EQ(answer.at("nearest")[0], json::parse(R"({"node":"n1","missing":"3 free GPUs"})"));
  EXPECT_EQ(answer.at("nearest")[1], json::parse(R"({"node":"n2","missing":"6 free GPUs"})"));
  EXPECT_EQ(change(answer, "add_node"), "1 more node like n1");
  EXPECT_EQ(change(answer, "free_pods"), "without x/old3 it fits on n1");
}

TEST_F(Explain, TheLeastImportantPodsAreTheOnesToFree) {
  json important = on_node(pod("important", 8), "n1");
  important["spec"]["priority"] = 1000;
  const json answer = explain(
      {node("n1", 8), node("n2", 8), important, on_node(pod("a", 4), "n2"), on_node(pod("b", 4), "n2")}, {pod("p", 4)});
  EXPECT_THAT(change(answer, "free_pods"), testing::EndsWith(" it fits on n2"));
}

TEST_F(Explain, WhatThePodAsksForMayBeTheObstacle) {
  json picky = pod("p", 1);
  picky["spec"]["nodeSelector"] = {{"nvidia.com/gpu.product", "H100"}};
  const json a100 = node("n1", 8, {{"nvidia.com/gpu.product", "A100"}});
  json answer = explain({a100}, {picky});
  EXPECT_EQ(answer.at("reasons"), json::parse(R"([{"reason":"GpuModel","nodes":1}])"));
  EXPECT_EQ(change(answer, "relax"), "without its choice of a GPU model it fits on n1");
  EXPECT_EQ(change(answer, "add_node"), "") << "another node of the wrong model is of no use";
  picky["spec"]["nodeSelector"] = {{"disk", "ssd"}};
  answer = explain({a100}, {picky});
  EXPECT_EQ(answer.at("reasons"), json::parse(R"([{"reason":"NodeSelector","nodes":1}])"));
  EXPECT_EQ(change(answer, "relax"), "without its nodeSelector it fits on n1");
}

TEST_F(Explain, SeveralAreAnsweredOneAfterTheOther) {
  const json answer = explain({node("n1", 8)}, {pod("a", 4), pod("b", 4), pod("c", 4)});
  EXPECT_FALSE(answer.at("fits").get<bool>());
  ASSERT_EQ(answer.at("answers").size(), 3U);
  EXPECT_THAT(places(answer.at("answers")[1]), ElementsAre("x/b n1 4,5,6,7"));
  EXPECT_FALSE(answer.at("answers")[2].at("fits").get<bool>());
}

// --- gangs ------------------------------------------------------------------------------------------------------

TEST_F(Explain, AGangThatFitsIsAnsweredWithItsPlan) {
  const json answer = explain({in_rack("a", 8, "r1"), in_rack("b", 8, "r2"), in_rack("c", 8, "r2")}, gang("g", 2, 8));
  EXPECT_EQ(answer.at("gang"), "x/g");
  EXPECT_EQ(answer.at("convention"), "mortise");
  EXPECT_EQ(answer.at("level"), "rack");
  EXPECT_EQ(answer.at("domain"), "r2");
  EXPECT_EQ(answer.at("spread"), json::parse(R"([{"level":"node","domains":2}])"));
  EXPECT_THAT(answer.at("places"), SizeIs(2));
  for (const json& place : answer.at("places")) {
    EXPECT_NE(place.at("node"), "a");
    EXPECT_EQ(place.at("devices"), "0,1,2,3,4,5,6,7");
  }
}

// The issue's own example.
TEST_F(Explain, ARefusalIsTheArithmeticOfTheBestRack) {
  std::vector<json> cluster;
  for (int i = 0; i < 3; ++i) cluster.push_back(in_rack("a" + std::to_string(i), 8, "r7"));
  for (int i = 0; i < 2; ++i) cluster.push_back(in_rack("b" + std::to_string(i), 8, "r8"));
  const json answer = explain(cluster, gang("g", 4, 8, "rack"));
  ASSERT_EQ(answer.at("reasons").size(), 1U);
  EXPECT_EQ(answer.at("reasons")[0].at("reason"), "GangNeverFits");
  EXPECT_EQ(answer.at("reasons")[0].at("detail"),
            "needs 4 x 8 GPUs in one rack; the best rack r7 has room for 3 if nothing else is there");
  EXPECT_EQ(answer.at("nearest"), json::parse(R"([{"domain":"r7","missing":"1 of 4 members"}])"));
  EXPECT_EQ(change(answer, "relax"), "without topology level \"rack\" it fits across the cluster");
  EXPECT_EQ(change(answer, "fewer_members"), "with 3 of its 4 members it fits in rack r7");
  EXPECT_EQ(change(answer, "add_node"), "1 more node like a0, with its labels");
  const Ran text = run({"--cluster", path("cluster.json"), "--pod", path("pods.json")});
  EXPECT_EQ(text.code, kExitNo);
  EXPECT_THAT(
      text.out,
      StartsWith(
          "gang x/g (mortise), 4 members: does not fit\n"
          "  GangNeverFits: needs 4 x 8 GPUs in one rack; the best rack r7 has room for 3 if nothing else is there\n"
          "  nearest: r7 lacks 1 of 4 members\n"));
}

TEST_F(Explain, SoManyNodesAreAddedAsItTakes) {
  // Two of five members fit; the others need a node each.
  const json answer = explain({node("a", 8), node("b", 8)}, gang("g", 5, 8));
  EXPECT_EQ(change(answer, "add_node"), "3 more nodes like a");
  EXPECT_EQ(explain({node("a", 8), node("b", 8)}, gang("h", 2, 8)).at("fits"), true) << "nothing of the trial stays";
}

TEST_F(Explain, AFullClusterTakesAWholeGangOfNewNodes) {
  const json answer = explain(
      {node("small", 4), node("a", 8), node("b", 8), on_node(pod("old", 8), "a"), on_node(pod("older", 8), "b")},
      gang("g", 2, 8));
  EXPECT_EQ(answer.at("reasons")[0].at("detail"), "needs 2 x 8 GPUs; there is room for 0");
  EXPECT_EQ(answer.at("nearest")[0].at("missing"), "8 free GPUs");
  EXPECT_EQ(change(answer, "add_node"), "2 more nodes like a");
}

TEST_F(Explain, LevelsThatTheClusterDoesNotHaveAreNamed) {
  const json answer = explain({in_rack("a", 8, "r1")}, gang("g", 2, 4, "block"));
  EXPECT_EQ(answer.at("reasons")[0].at("reason"), "GangUnknownLevel");
  EXPECT_EQ(answer.at("reasons")[0].at("detail"), "there is no topology level 'block'; known: rack, node");
  EXPECT_EQ(change(answer, "relax"), "without topology level \"block\" it fits in node a");
  const json named = explain({node("a", 4, {{"b", "b1"}}), node("c", 4, {{"b", "b1"}})}, gang("g", 2, 4, "block"),
                             {"--levels", "block=b"});
  EXPECT_EQ(named.at("domain"), "b1");
}

TEST_F(Explain, APreferredLevelThatTheClusterDoesNotHaveIsLeftOutAndSaid) {
  std::vector<json> pods = gang("g", 2, 8, "rack");
  for (json& pod : pods) pod["metadata"]["annotations"]["mortise.dev/topology-preferred"] = "row";
  const std::string note = "its preferred level does not count: there is no topology level 'row'; known: rack, node";
  const json answer = explain({in_rack("a", 8, "r1"), in_rack("b", 8, "r1")}, pods);
  EXPECT_EQ(answer.at("fits"), true);
  EXPECT_EQ(answer.at("note"), note);
  const Ran text = run({"--cluster", path("cluster.json"), "--pod", path("pods.json")});
  EXPECT_THAT(text.out, StartsWith("gang x/g (mortise), 2 members: fits in rack r1, 2 nodes\n  note: " + note + "\n"));
  const json refused = explain({in_rack("a", 8, "r1"), in_rack("b", 8, "r2")}, pods);
  EXPECT_EQ(refused.at("reasons")[0].at("reason"), "GangNeverFits");
  EXPECT_EQ(refused.at("note"), note);
  EXPECT_EQ(change(refused, "relax"), "without topology level \"rack\" it fits across the cluster");
  EXPECT_TRUE(explain({node("a", 8)}, gang("h", 2, 4)).at("note").is_null());
}

TEST_F(Explain, MembersOnNodesCountAndPinTheDomain) {
  std::vector<json> pods = gang("g", 2, 8, "rack");
  pods[0] = on_node(pods[0], "a");
  const std::vector<json> racks = {in_rack("a", 8, "r1"), in_rack("b", 8, "r2"), in_rack("c", 8, "r1"), pods[0]};
  const json answer = explain(racks, pods);
  EXPECT_THAT(places(answer), ElementsAre("x/g1 c 0,1,2,3,4,5,6,7"));
  EXPECT_EQ(answer.at("domain"), "r1");
  EXPECT_THAT(refused({in_rack("a", 8, "r1")}, pods),
              HasSubstr("pods.json: items[0]: pod \"x/g0\" is on node \"a\", but the cluster does not have it there"));
}

TEST_F(Explain, AGangThatIsNotCompleteWaits) {
  std::vector<json> pods = gang("g", 3, 1);
  pods.pop_back();
  EXPECT_EQ(explain({node("a", 8)}, pods).at("reasons")[0].at("detail"),
            "2 of 3 members are there; it starts when all of these are");
  EXPECT_EQ(explain({node("a", 8)}, pods).at("reasons")[0].at("reason"), "GangIncomplete");
  json waiting = pod("p", 1);
  waiting["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] = "pg";
  EXPECT_EQ(explain({node("a", 8)}, {waiting}).at("reasons")[0].at("detail"),
            "waits for its group object PodGroup x/pg");
}

// 3 x 1,000,000, of which 3 are there.
TEST_F(Explain, GangsThatTogetherAreLargerThanAnyThatIsPlacedAreRefusedWithTheArithmetic) {
  std::vector<json> pods;
  for (const char* name : {"A", "B", "C"}) {
    pods.push_back(pod(std::string(1, static_cast<char>(*name + 32)), 1));
    pods.back()["metadata"]["annotations"] = {{"gang.scheduling.koordinator.sh/name", name},
                                              {"gang.scheduling.koordinator.sh/min-available", "1000000"},
                                              {"gang.scheduling.koordinator.sh/groups", R"(["x/A","x/B","x/C"])"}};
  }
  const json reason = explain({node("a", 8)}, pods).at("reasons")[0];
  EXPECT_EQ(reason.at("reason"), "GangInvalid");
  EXPECT_EQ(reason.at("detail"), "needs 3000000 members together; 16384 are the most that are placed as one");
}

TEST_F(Explain, APodGroupAndItsPodsInOneFile) {
  json group = {{"apiVersion", "scheduling.x-k8s.io/v1alpha1"},
                {"kind", "PodGroup"},
                {"metadata", {{"name", "pg"}, {"namespace", "x"}}},
                {"spec", {{"minMember", 2}}}};
  std::vector<json> items = {std::move(group)};
  for (int i = 0; i < 3; ++i) {
    items.push_back(pod("p" + std::to_string(i), 4));
    items.back()["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] = "pg";
  }
  const json answer = explain({node("a", 8)}, items);
  EXPECT_EQ(answer.at("members"), 3);
  EXPECT_EQ(answer.at("minimum"), 2);
  EXPECT_THAT(places(answer), ElementsAre("x/p0 a 0,1,2,3", "x/p1 a 4,5,6,7")) << "the third has no room, and need not";
  const json none = explain({node("a", 4)}, items);
  EXPECT_EQ(none.at("reasons")[0].at("detail"), "needs 2 x 4 GPUs; there is room for 1 if nothing else is there");
}

// --- worked examples of other schedulers --------------------------------------------------------------------------

// Kueue, KEP 2724, BestFit: 3, 3, 2 and 1 free, 7 pods: 3, 3, - and 1. The last domain is the tightest.
TEST_F(Explain, KueueBestFitTakesTheRoomiestAndThenTheTightest) {
  const json answer = explain(
      {in_rack("a", 3, "r1"), in_rack("b", 3, "r2"), in_rack("c", 2, "r3"), in_rack("d", 1, "r4")}, gang("g", 7, 1));
  EXPECT_EQ(counts(answer), (Counts{{"a", 3}, {"b", 3}, {"d", 1}}));
  EXPECT_EQ(answer.at("spread"), json::parse(R"([{"level":"rack","domains":3},{"level":"node","domains":3}])"));
}

// KAI, docs/topology: zone A has 5 GPUs free, zone B 6; three tasks go to the tighter zone A, two of them into rack A1
// and one into another.
TEST_F(Explain, KaiTakesTheTighterZoneAndItsRoomiestRack) {
  const auto place = [](const std::string& name, const std::string& zone, const std::string& rack) {
    return node(name, 1, {{"topology.kubernetes.io/zone", zone}, {"topology.kubernetes.io/rack", rack}});
  };
  std::vector<json> nodes = {place("a1-1", "A", "A1"), place("a1-2", "A", "A1")};
  for (const char* rack : {"A2", "A3", "A4"}) nodes.push_back(place(std::string(rack) + "-1", "A", rack));
  for (const char* rack : {"B1", "B2", "B3"}) {
    for (const char* which : {"-1", "-2"}) nodes.push_back(place(std::string(rack) + which, "B", rack));
  }
  std::vector<json> tasks = gang("g", 3, 1, "zone");
  for (json& task : tasks) task["metadata"]["annotations"]["mortise.dev/topology-preferred"] = "rack";
  const json answer = explain(nodes, tasks);
  EXPECT_EQ(answer.at("level"), "zone");
  EXPECT_EQ(answer.at("domain"), "A");
  const Counts found = counts(answer);
  EXPECT_EQ(found.count("a1-1") + found.count("a1-2"), 2U);
  EXPECT_EQ(answer.at("spread")[0], json::parse(R"({"level":"rack","domains":2})"));
}

// --- reports of other schedulers, as explain sees them ------------------------------------------------------------

// koordinator#872: groups {A,B} and {C,D} of two pods each, four slots, in the order A C B D. A and B start, C and D
// hold nothing.
TEST_F(Explain, Koordinator872GangsThatStartTogetherArePlacedTogether) {
  std::vector<json> pods;
  for (const char* name : {"A", "C", "B", "D"}) {
    const bool first = *name == 'A' || *name == 'B';
    for (int i = 0; i < 2; ++i) {
      pods.push_back(pod(std::string(1, static_cast<char>(*name + 32)) + std::to_string(i), 1));
      pods.back()["metadata"]["annotations"] = {
          {"gang.scheduling.koordinator.sh/name", name},
          {"gang.scheduling.koordinator.sh/min-available", "2"},
          {"gang.scheduling.koordinator.sh/groups", first ? R"(["x/A","x/B"])" : R"(["x/C","x/D"])"}};
    }
  }
  const json answer = explain({node("n1", 2), node("n2", 2)}, pods);
  ASSERT_EQ(answer.at("answers").size(), 2U);
  EXPECT_EQ(answer.at("answers")[0].at("places").size(), 4U);
  EXPECT_TRUE(answer.at("answers")[0].at("fits").get<bool>());
  EXPECT_FALSE(answer.at("answers")[1].at("fits").get<bool>());
  // Without B, A does not start though it would fit.
  const json alone = explain({node("n1", 2)}, {pods[0], pods[1]});
  EXPECT_EQ(alone.at("reasons")[0].at("detail"), "1 of the 2 gangs are there that start together");
}

// volcano#6010: two members run, the minimum is five now, others leave 2 CPUs: none of the three new ones starts, and
// the two stay.
TEST_F(Explain, Volcano6010NewMembersStartTogetherOrNotAtAll) {
  std::vector<json> pods;
  for (int i = 0; i < 5; ++i) pods.push_back(member("m" + std::to_string(i), "g", 5, 0));
  for (std::size_t i = 0; i < 2; ++i) pods[i] = on_node(pods[i], "n");
  json small = node("n", 0);
  small["status"]["allocatable"]["cpu"] = "7";
  small["status"]["allocatable"]["nvidia.com/gpu"] = "1";
  const auto filled = [&](const char* cpu) {
    return std::vector<json>{small, pods[0], pods[1], on_node(pod("filler", 0, cpu), "n")};
  };
  EXPECT_EQ(explain(filled("3"), pods).at("reasons")[0].at("detail"), "needs 3 x 1000 milli-CPU; there is room for 2");
  EXPECT_EQ(places(explain(filled("2"), pods)).size(), 3U);
}

// kueue#15373: rack r1 has a node for the leader and one for workers, r2 two for workers. The leader's selector counts
// where the rack is chosen.
TEST_F(Explain, Kueue15373SelectorsOfRolesCountWhereTheRackIsChosen) {
  const auto place = [](const char* name, const char* rack, const char* role) {
    return node(name, 8, {{"topology.kubernetes.io/rack", rack}, {"role", role}});
  };
  std::vector<json> pods = gang("g", 2, 8, "rack");
  pods[0]["spec"]["nodeSelector"] = {{"role", "leader"}};
  pods[1]["spec"]["nodeSelector"] = {{"role", "worker"}};
  const std::vector<json> nodes = {place("w2", "r2", "worker"), place("w3", "r2", "worker"),
                                   place("l1", "r1", "leader"), place("w1", "r1", "worker")};
  const json answer = explain(nodes, pods);
  EXPECT_THAT(places(answer), ElementsAre("x/g0 l1 0,1,2,3,4,5,6,7", "x/g1 w1 0,1,2,3,4,5,6,7"));
  pods[0]["spec"]["nodeSelector"] = {{"role", "chief"}};
  EXPECT_EQ(explain(nodes, pods).at("reasons")[0].at("detail"),
            "no node has the labels of the nodeSelector of its members");
}

// lws#167: four nodes of one GPU, four replicas of two: two replicas start whole, not four leaders.
TEST_F(Explain, Lws167ReplicasStartWholeOneAfterTheOther) {
  write("lws.yaml",
        "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: llm}\nspec:\n  replicas: 4\n"
        "  leaderWorkerTemplate:\n    size: 2\n    workerTemplate:\n      spec:\n        containers:\n"
        "        - {name: c, resources: {limits: {nvidia.com/gpu: 1}}}\n");
  write_list("cluster.json", {node("a", 1), node("b", 1), node("c", 1), node("d", 1)});
  const Ran ran = run({"--cluster", path("cluster.json"), "--pod", path("lws.yaml"), "--json"});
  ASSERT_EQ(ran.code, kExitNo) << ran.err;
  const json answers = json::parse(ran.out).at("answers");
  ASSERT_EQ(answers.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(answers[i].at("fits"), i < 2) << i;
}

// --- bad input ----------------------------------------------------------------------------------------------------

TEST_F(Explain, MistakesAreOneLineWithFileAndLine) {
  write_list("cluster.json", {node("a", 8)});
  const auto refuses = [&](const std::string& text) {
    write("m.yaml", text);
    const Ran ran = run({"--cluster", path("cluster.json"), "--pod", path("m.yaml")});
    EXPECT_EQ(ran.code, kExitBad) << text;
    EXPECT_EQ(ran.out, "");
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
    return ran.err;
  };
  EXPECT_THAT(refuses(""), HasSubstr("m.yaml: no pod; allowed: Pods, or one of Job, JobSet"));
  EXPECT_THAT(refuses("a: 1\n"), HasSubstr("m.yaml:1: no kind"));
  EXPECT_THAT(refuses("- a\n"), HasSubstr("m.yaml:1: must be a Kubernetes object"));
  EXPECT_THAT(refuses("{\"kind\":"), HasSubstr("m.yaml:1: "));
  EXPECT_THAT(refuses("kind: Service\napiVersion: v1\nmetadata: {name: s}\n"),
              HasSubstr("no pod (objects of kind \"Service\" are left out"));
  EXPECT_THAT(refuses("kind: Pod\napiVersion: v1\nspec: {}\n"), HasSubstr("m.yaml:1: metadata.name of the Pod"));
  EXPECT_THAT(refuses("\n---\nkind: Pod\napiVersion: v1\nmetadata: {name: 7}\n"), HasSubstr("m.yaml:3: "));
  EXPECT_THAT(refuses("kind: Pod\napiVersion: v1\nmetadata: {name: p}\nspec:\n  containers:\n"
                      "  - {name: c, resources: {limits: {nvidia.com/gpu: x}}}\n"),
              HasSubstr("m.yaml:1: pod \"default/p\": "));
  EXPECT_THAT(refuses("kind: Job\napiVersion: batch/v1\nmetadata: {name: j}\nspec: {parallelism: 1000000}\n"),
              HasSubstr("m.yaml:1: its replicas are more than 100000 pods"));
  EXPECT_THAT(refuses("kind: PyTorchJob\napiVersion: kubeflow.org/v1\nmetadata: {name: j}\nspec: {pytorchReplicaSpecs: "
                      "{Worker: {replicas: -1}}}\n"),
              HasSubstr("m.yaml:1: "));
  const std::string group = "kind: PodGroup\napiVersion: scheduling.x-k8s.io/v1alpha1\nmetadata: {name: g}\n";
  EXPECT_THAT(refuses(group + "---\n" + group), HasSubstr("m.yaml:5: PodGroup \"default/g\" appears twice"));
  EXPECT_THAT(refuses("kind: Job\napiVersion: batch/v1\nspec: {}\n"),
              HasSubstr("m.yaml:1: a Job without metadata.name"));
}

TEST_F(Explain, ThePodsOfAnAnnotationThatIsWrongAreTheFilesFault) {
  json wrong = pod("p", 1);
  wrong["metadata"]["annotations"]["mortise.dev/gang-min-member"] = "2";
  EXPECT_THAT(refused({node("a", 8)}, {wrong}), HasSubstr("pods.json: items[0]: pod \"x/p\": gang by mortise: "));
  EXPECT_THAT(refused({node("a", 8)}, {pod("p", 1), pod("p", 1)}), HasSubstr("appears twice"));
}

}  // namespace
}  // namespace mortise::sim
