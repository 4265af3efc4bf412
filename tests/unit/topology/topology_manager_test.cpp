// Whole admissions, written as cases of `mortise admit` because that is the shortest way to write a node.
#include "scheduler/topology/topology_manager.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "scheduler/topology/admit_cases.h"

namespace mortise::topology {
namespace {

using nlohmann::json;

json decide(const json& input) {
  AdmitCases cases;
  const Result<std::string> answer = cases.answer(input.dump());
  EXPECT_TRUE(answer.ok()) << (answer.ok() ? "" : answer.message());
  return answer.ok() ? json::parse(*answer) : json::object();
}

json container(const std::string& name, const json& limits) {
  return {{"name", name}, {"resources", {{"limits", limits}}}};
}

// Two NUMA nodes with 16 CPUs (one of node 0 is reserved) and 256 GiB each; 4 + 4 GPUs; every manager is on.
json dual_socket(const std::string& policy) {
  json gpus = json::array();
  for (int i = 0; i < 8; ++i) gpus.push_back({{"id", "g" + std::to_string(i)}, {"numa", {i / 4}}});
  return {{"id", 1},
          {"policy", policy},
          {"cpu", "static"},
          {"memory", "Static"},
          {"node",
           {{"numa",
             {{{"id", 0}, {"cpus", {{"total", 16}, {"reserved", 1}}}, {"memory", {{"memory", "256Gi"}}}},
              {{"id", 1}, {"cpus", {{"total", 16}}}, {"memory", {{"memory", "256Gi"}}}}}},
            {"devices", {{"gpu", gpus}}}}}};
}

void allocate(json& input, std::initializer_list<std::size_t> gpus) {
  for (const std::size_t i : gpus) input["node"]["devices"]["gpu"][i]["allocated"] = true;
}

TEST(TopologyManager, AlignsGpusCpusAndMemoryOnOneNode) {
  json input = dual_socket("single-numa-node");
  input["pod"] = {{"containers", {container("c", {{"gpu", 2}, {"cpu", 16}, {"memory", "200Gi"}})}}};
  const json answer = decide(input);
  EXPECT_EQ(answer["admit"], true);
  // Node 0 has 15 CPUs to give, so it is node 1 for all.
  EXPECT_EQ(answer["affinity"], json({1}));
  EXPECT_EQ(answer["containers"][0]["cpus"], "16-31");
  EXPECT_EQ(answer["containers"][0]["memory"], json({1}));
  EXPECT_EQ(answer["devices"]["c"]["gpu"],
            json::parse(R"({"exact":[],"any":[{"count":2,"of":["g4","g5","g6","g7"]}]})"));
}

TEST(TopologyManager, SaysWhichResourceIsShortOnWhichNode) {
  json input = dual_socket("single-numa-node");
  // 3 GPUs fit only node 1, 15 CPUs only node 0 (8 of node 1 are taken).
  allocate(input, {0, 1});
  input["node"]["numa"][1]["cpus"]["free"] = 8;
  input["pod"] = {{"containers", {container("c", {{"gpu", 3}, {"cpu", 15}, {"memory", "1Gi"}})}}};
  const json answer = decide(input);
  EXPECT_EQ(answer["admit"], false);
  EXPECT_EQ(answer["reason"], "TopologyAffinityError");
  const json gpu = {{"resource", "gpu"}, {"numa", {0}},    {"asked", 3},
                    {"free", 2},         {"installed", 4}, {"container", "c"}};
  const json cpu = {{"resource", "cpu"}, {"numa", {1}},     {"asked", 15},
                    {"free", 8},         {"installed", 16}, {"container", "c"}};
  EXPECT_EQ(answer["shortages"], json({gpu, cpu}));
  EXPECT_EQ(
      answer["why"],
      "container c, policy single-numa-node: gpu (3) wants {1}, cpu (15) wants {0}, memory (1073741824) wants {0} "
      "{1}: no NUMA nodes that all of them prefer");
}

TEST(TopologyManager, ExplainsAResourceThatNoNodeCanHold) {
  json input = dual_socket("restricted");
  allocate(input, {0, 1, 2, 4, 5, 6});
  input["pod"] = {{"containers", {container("c", {{"gpu", 2}})}}};
  const json answer = decide(input);
  EXPECT_EQ(answer["admit"], false);
  EXPECT_EQ(
      answer["why"],
      "container c, policy restricted: gpu asks 2: {0} has 1 free of 4, {1} has 1 free of 4; fewer nodes would do "
      "if they were free, it fits only {0,1} (best is {0,1}, not preferred)");
  EXPECT_EQ(answer["shortages"].size(), 2U);
}

TEST(TopologyManager, CpusAndMemoryOfPodsThatAreNotGuaranteedAreNotAligned) {
  json input = dual_socket("restricted");
  input["pod"] = {{"containers", {container("c", {{"gpu", 5}, {"cpu", 2}})}}};  // no memory limit: Burstable
  const json answer = decide(input);
  EXPECT_EQ(answer["admit"], true);  // five GPUs need both nodes, and nothing else has an opinion
  EXPECT_EQ(answer["affinity"], json({0, 1}));
  EXPECT_FALSE(answer["containers"][0].contains("cpus"));
}

TEST(TopologyManager, AFractionOfACpuStaysInTheSharedPool) {
  json input = dual_socket("restricted");
  input["pod"] = {{"containers", {container("c", {{"gpu", 5}, {"cpu", "1500m"}, {"memory", "300Gi"}})}}};
  const json answer = decide(input);
  EXPECT_EQ(answer["admit"], true);  // memory too needs both nodes: {0,1} is preferred by all
  EXPECT_EQ(answer["containers"][0]["memory"], json({0, 1}));
}

TEST(TopologyManager, AnInitContainerSpreadOverNodesSpoilsTheApp) {
  json input = dual_socket("restricted");
  input["policy"] = "best-effort";
  input["pod"] = {{"initContainers", {container("i", {{"gpu", 6}})}}, {"containers", {container("c", {{"gpu", 2}})}}};
  json answer = decide(input);
  EXPECT_EQ(answer["admit"], true);
  EXPECT_EQ(answer["containers"][1]["affinity"], json({0, 1}));  // all six reused devices must be inside
  EXPECT_EQ(answer["containers"][1]["preferred"], false);
  input["policy"] = "restricted";
  answer = decide(input);
  EXPECT_EQ(answer["admit"], false);
  EXPECT_EQ(answer["containers"][0]["preferred"], true);  // the init container alone was fine
}

TEST(TopologyManager, ASidecarKeepsItsDevices) {
  json input = dual_socket("restricted");
  json sidecar = container("s", {{"gpu", 3}});
  input["pod"] = {{"initContainers", {sidecar}}, {"containers", {container("c", {{"gpu", 6}})}}};
  // As an ordinary init container the three are reused; as a sidecar five are left.
  EXPECT_EQ(decide(input)["admit"], true);
  input["pod"]["initContainers"][0]["restartPolicy"] = "Always";
  EXPECT_EQ(decide(input)["admit"], false);
}

TEST(TopologyManager, PodScopeMergesOnceForTheSum) {
  json input = dual_socket("restricted");
  allocate(input, {0, 1, 2, 4, 5, 6});
  input["pod"] = {{"containers", {container("a", {{"gpu", 1}}), container("b", {{"gpu", 1}})}}};
  EXPECT_EQ(decide(input)["admit"], true);  // container scope: one on each node
  input["scope"] = "pod";
  const json answer = decide(input);
  EXPECT_EQ(answer["admit"], false);  // two would fit one node, but are free on two
  EXPECT_EQ(answer["why"].get<std::string>().substr(0, 25), "pod, policy restricted: g");
}

TEST(TopologyManager, BestEffortAdmitsAndThenAllocationFails) {
  json input = dual_socket("best-effort");
  allocate(input, {0, 1, 2, 4, 5, 6, 7});
  input["pod"] = {{"containers", {container("c", {{"gpu", 2}})}}};
  const json answer = decide(input);
  EXPECT_EQ(answer["reason"], "UnexpectedAdmissionError");
  EXPECT_EQ(answer["message"],
            "Allocate failed due to requested number of devices unavailable for gpu. Requested: 2, Available: 1, which "
            "is unexpected");
}

TEST(TopologyManager, MemoryWithoutAPlaceFailsInAllocationNotInTheMerge) {
  // The published case TM-16: 56 GiB are taken on node 0 alone, 400 GiB would need both nodes.
  json input = dual_socket("restricted");
  input["node"]["memory_blocks"] = {{{"numa", {0}}, {"size", "56Gi"}}};
  input["pod"] = {{"containers", {container("c", {{"gpu", 8}, {"cpu", "500m"}, {"memory", "400Gi"}})}}};
  const json answer = decide(input);
  EXPECT_EQ(answer["admit"], false);
  EXPECT_EQ(answer["reason"], "UnexpectedAdmissionError");
}

TEST(TopologyManager, FullCoresAreDemandedWhereTheOptionSaysSo) {
  json input = dual_socket("restricted");
  input["node"]["threads_per_core"] = 2;
  input["cpu_options"] = {{"full-pcpus-only", "true"}};
  input["pod"] = {{"containers", {container("c", {{"cpu", 3}, {"memory", "1Gi"}})}}};
  json answer = decide(input);
  EXPECT_EQ(answer["reason"], "SMTAlignmentError");
  EXPECT_EQ(answer["message"], "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2");
  // The reserved CPU 0 makes its sibling unusable: 30 of 32 CPUs are in whole free cores.
  input["policy"] = "none";
  input["pod"] = {{"containers", {container("c", {{"cpu", 32}, {"memory", "1Gi"}})}}};
  answer = decide(input);
  EXPECT_EQ(
      answer["message"],
      "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 30, requested CPUs = 32, CPUs "
      "per core = 2");
}

TEST(TopologyManager, AfterARestartHintsComeFromWhatIsHeld) {
  json input = dual_socket("restricted");
  input["pod"] = {{"containers", {container("c", {{"gpu", 2}})}}};
  input["assigned"] = {{"c", {{"devices", {{"gpu", {"g0", "g4"}}}}}}};
  EXPECT_EQ(decide(input)["admit"], false);  // {0,1} and not preferred
  input["assigned"]["c"]["devices"]["gpu"] = {"g0", "g1"};
  const json answer = decide(input);
  EXPECT_EQ(answer["admit"], true);
  EXPECT_EQ(answer["devices"]["c"]["gpu"], json({"g0", "g1"}));
}

TEST(TopologyManager, WhatKubeletMayPickDecidesLaterSoTheAnswerIsNotCertain) {
  // One container takes two of 2 + 2 GPUs under nil affinity of nothing else; the second wants two on one node.
  json input = dual_socket("restricted");
  input["policy"] = "best-effort";
  allocate(input, {2, 3, 6, 7});
  input["node"]["devices"]["nic"] = {{{"id", "n0"}, {"numa", {0}}}, {{"id", "n1"}, {"numa", {1}}}};
  // Both NICs pull the affinity to {0,1}; the GPUs may then come from either node.
  input["pod"] = {{"containers", {container("a", {{"gpu", 2}, {"nic", 2}}), container("b", {{"gpu", 2}})}}};
  json answer = decide(input);
  EXPECT_EQ(answer["admit"], true);
  EXPECT_EQ(answer["certain"], true);
  EXPECT_EQ(answer["outcomes"].size(), 3U);  // 2+0, 1+1, 0+2
  // With a plugin preference there is one outcome.
  json listed = input["node"]["devices"]["gpu"];
  input["node"]["devices"]["gpu"] = {{"devices", listed}, {"prefer", {"g4", "g5", "g0", "g1"}}};
  answer = decide(input);
  EXPECT_FALSE(answer.contains("outcomes"));
  EXPECT_EQ(answer["devices"]["a"]["gpu"], json({"g4", "g5"}));
}

TEST(TopologyManager, RefusesIfAnyOutcomeIsRefused) {
  // Free are g0 {0}, g1 {0}, g4 {0,1}, g5 {1}. Container a takes one inside {0}: g0, g1 or g4. Container b wants two
  // on one node: g0 and g1 if a took g4, else g4 and the other one of node 0.
  json input = dual_socket("restricted");
  allocate(input, {2, 3, 6, 7});
  input["node"]["devices"]["gpu"][4]["numa"] = {0, 1};
  input["pod"] = {{"containers", {container("a", {{"gpu", 1}}), container("b", {{"gpu", 2}})}}};
  EXPECT_EQ(decide(input)["certain"], true);
  EXPECT_EQ(decide(input)["admit"], true);
  // Without g1, b needs g4 beside g0 or g5. If a took g4, two are free on two nodes: refused. If a took g0, node 1 has
  // g4 and g5: admitted.
  allocate(input, {1});
  const json answer = decide(input);
  EXPECT_EQ(answer["admit"], false);
  EXPECT_EQ(answer["certain"], false);
  EXPECT_EQ(answer["outcomes"].size(), 2U);
  EXPECT_EQ(answer["reason"], "TopologyAffinityError");  // the refused outcome leads
}

TEST(TopologyManager, PolicyNoneAsksForNoHints) {
  json input = dual_socket("none");
  input["pod"] = {{"containers", {container("c", {{"gpu", 8}, {"cpu", 20}, {"memory", "400Gi"}})}}};
  const json answer = decide(input);
  EXPECT_EQ(answer["admit"], true);
  EXPECT_EQ(answer["affinity"], nullptr);
  EXPECT_EQ(answer["containers"][0]["memory"], json({0, 1}));  // the memory manager pins on its own
}

TEST(TopologyManager, PodLevelResourcesTurnCpuAndMemoryAlignmentOff) {
  json input = dual_socket("single-numa-node");
  input["pod"] = {{"containers", {container("c", {{"gpu", 1}, {"cpu", 20}, {"memory", "400Gi"}})}},
                  {"resources", {{"limits", {{"cpu", 20}, {"memory", "400Gi"}}}}}};
  EXPECT_EQ(decide(input)["admit"], true);
  input["pod"].erase("resources");
  EXPECT_EQ(decide(input)["admit"], false);
}

TEST(TopologyManager, MoreThanEightNumaNodesNeedTheOption) {
  json numa = json::array();
  for (int i = 0; i < 9; ++i) numa.push_back({{"id", i}});
  json input = {{"id", 1},
                {"policy", "restricted"},
                {"node", {{"numa", numa}}},
                {"pod", {{"containers", {container("c", json::object())}}}}};
  AdmitCases cases;
  const Result<std::string> refused = cases.answer(input.dump());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(
      refused.message(),
      "kubelet does not start with topology manager policy restricted on 9 NUMA nodes; max-allowable-numa-nodes is 8");
  input["options"] = {{"max-allowable-numa-nodes", "16"}};
  EXPECT_EQ(decide(input)["admit"], true);
}

TEST(TopologyManager, ManyNumaNodesWithFewDevicesWorkSince136) {
  // As on GB200: 34 NUMA nodes, of which two have GPUs. Before 1.36 kubelet enumerated the subsets of all 34.
  json numa = json::array();
  for (int i = 0; i < 34; ++i) numa.push_back({{"id", i}});
  json input = {
      {"id", 1},
      {"policy", "single-numa-node"},
      {"options", {{"max-allowable-numa-nodes", "64"}}},
      {"node", {{"numa", numa}, {"devices", {{"gpu", {{{"id", "a"}, {"numa", {0}}}, {{"id", "b"}, {"numa", {1}}}}}}}}},
      {"pod", {{"containers", {container("c", {{"gpu", 1}})}}}}};
  EXPECT_EQ(decide(input)["affinity"], json::array({0}));
  input["kubelet"] = "1.35";
  AdmitCases cases;
  const Result<std::string> refused = cases.answer(input.dump());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.message().substr(0, 26), "hints over 34 NUMA nodes; ");
}

TEST(TopologyManager, OutcomesBeyondTheLimitMakeTheAnswerNo) {
  // Any two of 2 + 2 devices under a mask of both nodes, asked for twice: three outcomes, all admitted.
  NodeState node;
  node.nodes.all = 0b11;
  node.devices.push_back({"gpu", std::vector<Device>(4)});
  for (std::size_t i = 0; i < 4; ++i) {
    node.devices[0].devices[i].topology = DeviceTopology::kNodes;
    node.devices[0].devices[i].numa = i < 2 ? 0b01 : 0b10;
  }
  // The second resource, one device per node, pulls the affinity of the first container to both.
  node.devices.push_back({"nic", {node.devices[0].devices[0], node.devices[0].devices[2]}});
  PodAsk pod;
  pod.containers.resize(2);
  pod.containers[0].devices = {{0, 2}, {1, 2}};
  pod.containers[1].devices = {{0, 2}};
  KubeletConfig config;
  config.policy = TopologyPolicy::kBestEffort;
  const Result<Admission> all = TopologyManager().admit(node, config, pod);
  ASSERT_TRUE(all.ok());
  EXPECT_TRUE(all->admit && all->certain && all->complete);
  EXPECT_EQ(all->outcomes.size(), 3U);
  const Result<Admission> some = TopologyManager(2).admit(node, config, pod);
  ASSERT_TRUE(some.ok());
  EXPECT_FALSE(some->admit || some->certain || some->complete);
  EXPECT_EQ(some->outcomes.size(), 2U);
}

}  // namespace
}  // namespace mortise::topology
