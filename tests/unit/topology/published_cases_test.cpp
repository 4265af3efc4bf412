// The Topology Manager cases published beside the repository: raw hints and what each policy makes of them.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "scheduler/topology/admit_cases.h"
#include "tests/support/shared_data.h"

namespace mortise::topology {
namespace {

using nlohmann::json;

json answer_to(const json& input) {
  AdmitCases cases;
  const Result<std::string> answer = cases.answer(input.dump());
  EXPECT_TRUE(answer.ok()) << (answer.ok() ? "" : answer.message());
  return answer.ok() ? json::parse(*answer) : json::object();
}

// The file tells the option of TM-12c and its distances in words: 12 within a socket, 32 across; two nodes per socket.
void complete_case(json& input) {
  if (input["id"] != "TM-12c") return;
  input["options"] = {{"prefer-closest-numa-nodes", "true"}};
  input["distances"] = json::parse("[[10,12,32,32],[12,10,32,32],[32,32,10,12],[32,32,12,10]]");
}

TEST(PublishedCases, EveryPolicyGivesThePublishedResult) {
  const auto shared = test::shared_dir();
  if (!shared) GTEST_SKIP() << "no ../shared with topologies/topology-manager-cases.json";
  std::ifstream file(*shared / "topologies/topology-manager-cases.json");
  const json document = json::parse(file);
  int compared = 0;
  for (json input : document.at("cases")) {
    const json expected = input.at("result");
    complete_case(input);
    const json answer = answer_to(input);
    for (const auto& [policy, wanted] : expected.items()) {
      if (!wanted.contains("admit")) continue;  // TM-18c is about two containers; see the next test
      const json& got = answer.at("result").at(policy);
      const json seen = {{"admit", got["admit"]}, {"affinity", got["affinity"]}, {"preferred", got["preferred"]}};
      EXPECT_EQ(seen, wanted) << input["id"] << " " << policy;
      ++compared;
    }
  }
  EXPECT_EQ(document.at("cases").size(), 27U);
  EXPECT_EQ(compared, 26 * 3);
}

TEST(PublishedCases, ContainersOfOnePodMayLandOnDifferentNodes) {
  const auto shared = test::shared_dir();
  if (!shared) GTEST_SKIP() << "no ../shared with topologies/topology-manager-cases.json";
  // TM-18c: 4 + 4 GPUs of which one per node is free, two containers with one GPU each, container scope.
  const json input = json::parse(R"({
    "id": "TM-18c", "policy": "single-numa-node",
    "node": {"numa": [{"id": 0}, {"id": 1}],
             "devices": {"gpu": [{"id": "g0", "numa": [0]}, {"id": "g1", "numa": [0], "allocated": true},
                                 {"id": "g4", "numa": [1]}, {"id": "g5", "numa": [1], "allocated": true}]}},
    "pod": {"containers": [{"name": "c1", "resources": {"limits": {"gpu": "1"}}},
                           {"name": "c2", "resources": {"limits": {"gpu": "1"}}}]}})");
  const json answer = answer_to(input);
  std::ifstream file(*shared / "topologies/topology-manager-cases.json");
  for (const json& published : json::parse(file).at("cases")) {
    if (published["id"] != "TM-18c") continue;
    const json& wanted = published.at("result").at("single-numa-node");
    for (const json& container : answer.at("containers")) {
      EXPECT_EQ(container["affinity"], wanted.at(container["name"])["affinity"]);
    }
    EXPECT_EQ(answer["admit"], wanted["c1"]["admit"]);
  }
}

}  // namespace
}  // namespace mortise::topology
