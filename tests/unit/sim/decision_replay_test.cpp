#include "sim/decision_replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/unit/sim/scratch_dir.h"

namespace mortise::sim {
namespace {

using testing::HasSubstr;

std::string node(const std::string& name, int gpus, const std::string& spec = "{}") {
  return R"({"node":{"metadata":{"name":")" + name + R"(","uid":")" + name + R"("},"spec":)" + spec +
         R"(,"status":{"allocatable":{"cpu":"64","memory":"256Gi","pods":"110","nvidia.com/gpu":")" +
         std::to_string(gpus) + R"("},"capacity":{"nvidia.com/gpu":")" + std::to_string(gpus) + "\"}}}}\n";
}

std::string pod(const std::string& uid, int gpus) {
  return R"("pod":{"metadata":{"name":")" + uid + R"(","namespace":"default","uid":")" + uid +
         R"("},"spec":{"containers":[{"name":"main","resources":{"limits":{"nvidia.com/gpu":")" + std::to_string(gpus) +
         R"("}}}]}})";
}

std::string decided(const std::string& uid, int gpus, const std::string& on, const std::string& devices,
                    const std::string& candidates = "") {
  return R"({"decided":{)" + pod(uid, gpus) + R"(,"node":")" + on + R"(","devices":{"main":[)" + devices + "]}" +
         (candidates.empty() ? "" : R"(,"candidates":[)" + candidates + "]") + "}}\n";
}

class DecisionReplay : public testing::Test {
 protected:
  Result<DecisionReplayResult> replay(const std::string& log, const std::string& policy = "best-fit") {
    const std::string path = (dir_.path() / "log.jsonl").string();
    std::ofstream(path) << log;
    return replay_decisions({path, policy, 1, "", ""});
  }
  ScratchDir dir_;
};

// best-fit takes the node with the least room left: s has 2 GPUs, b has 8.
TEST_F(DecisionReplay, TheSamePolicyRepeatsTheLog) {
  const std::string log = node("b", 8) + node("s", 2) + decided("u1", 1, "s", "\"0\"") +
                          decided("u2", 1, "s", "\"1\"") + decided("u3", 1, "b", "\"0\"") + "{\"ended\":\"u1\"}\n" +
                          decided("u4", 1, "s", "\"0\"");
  const auto result = replay(log);
  ASSERT_TRUE(result.ok()) << result.message();
  EXPECT_EQ(result->decisions, 4);
  EXPECT_EQ(result->same, 4);
}

TEST_F(DecisionReplay, WithoutTheDepartureTheLastPodGoesElsewhere) {
  const auto result =
      replay(node("b", 8) + node("s", 2) + decided("u1", 2, "s", "\"0\",\"1\"") + decided("u2", 1, "s", "\"0\""));
  ASSERT_TRUE(result.ok()) << result.message();
  EXPECT_EQ(result->same, 1);
  EXPECT_EQ(result->other_node, 1);
  ASSERT_EQ(result->differences.size(), 1U);
  EXPECT_EQ(result->differences[0].pod, "default/u2");
  EXPECT_EQ(result->differences[0].was_node, "s");
  EXPECT_EQ(result->differences[0].now_node, "b");
}

TEST_F(DecisionReplay, ADifferenceOfDevicesOrAPodThatFitsNowhereIsCounted) {
  const auto result = replay(node("s", 2) + decided("u1", 1, "s", "\"1\"") + decided("u2", 2, "s", "\"0\",\"1\""));
  ASSERT_TRUE(result.ok()) << result.message();
  EXPECT_EQ(result->other_devices, 1);
  EXPECT_EQ(result->not_placed, 1);
}

TEST_F(DecisionReplay, CordonedNodesLeftOutCandidatesAndPodsOfOthersCount) {
  const std::string cordoned = node("s", 2, R"({"unschedulable":true})");
  const std::string other = R"({"bound":{)" + pod("x", 7) + R"(,"node":"b"}})" + "\n";
  const auto result = replay(node("b", 8) + node("s", 2) + node("t", 4) + cordoned + other +
                             decided("u1", 1, "b", "\"7\"") + decided("u2", 1, "t", "\"0\"", R"("t","s")"));
  ASSERT_TRUE(result.ok()) << result.message();
  EXPECT_EQ(result->same, 2) << result->differences.at(0).now_node;
}

// Two NUMA nodes of four GPUs, as is told only when b has a pod already: whichever of the two has its GPU, the other
// has room for four. Of the GPUs on record those are 4 to 7; best-fit takes b rather than c, which is empty.
TEST_F(DecisionReplay, APodThatCameBeforeTheTopologyOfItsNodeMayHoldAnyDevice) {
  const std::string later =
      R"({"node":{"metadata":{"name":"b","uid":"b","annotations":{"mortise.dev/kubelet":"policy=single-numa-node",)"
      R"("mortise.dev/topology":"{\"gpus\":[{\"index\":0,\"numa\":0},{\"index\":1,\"numa\":0},{\"index\":2,\"numa\":0},)"
      R"({\"index\":3,\"numa\":0},{\"index\":4,\"numa\":1},{\"index\":5,\"numa\":1},{\"index\":6,\"numa\":1},)"
      R"({\"index\":7,\"numa\":1}]}"}},"status":{"allocatable":{"cpu":"64","memory":"256Gi","pods":"110",)"
      R"("nvidia.com/gpu":"8"},"capacity":{"nvidia.com/gpu":"8"}}}})"
      "\n";
  const auto result = replay(node("b", 8) + decided("u1", 1, "b", "\"0\"") + later + node("c", 8) +
                             decided("u2", 4, "b", "\"4\",\"5\",\"6\",\"7\""));
  ASSERT_TRUE(result.ok()) << result.message();
  EXPECT_EQ(result->same, 2) << result->differences.at(0).now_node;
}

TEST_F(DecisionReplay, BadLinesAreNamed) {
  const struct {
    std::string log;
    std::string why;
  } cases[] = {
      {"{", "log.jsonl:1: not JSON"},
      {node("s", 2) + "[]", ":2: not an object with one key; allowed: one of node, node_gone, decided, bound, ended"},
      {R"({"pod":{}})", R"(unknown "pod")"},
      {R"({"node_gone":"x"})", R"(node "x" is not in the cluster)"},
      {R"({"decided":{"node":"s"}})", "no pod"},
      {R"({"decided":7})", "decided is not an object"},
      {R"({"ended":7})", "ended is not a name"},
      {R"({"bound":{)" + pod("u1", 1) + "}}", "a bound pod without node"},
      {node("s", 2) + decided("u1", 1, "s", "\"0\"") + decided("u1", 1, "s", "\"0\""), "has a place already"},
      {decided("u1", 1, "s", "\"GPU-1\""), "devices by UUID; allowed: indices"},
  };
  for (const auto& bad : cases) {
    const auto result = replay(bad.log);
    ASSERT_FALSE(result.ok()) << bad.log;
    EXPECT_THAT(result.message(), HasSubstr(bad.why));
  }
  EXPECT_FALSE(replay_decisions({"/no/such/file", "best-fit", 1, "", ""}).ok());
}

}  // namespace
}  // namespace mortise::sim
