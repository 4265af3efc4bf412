#include "scheduler/topology/admit_cases.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace mortise::topology {
namespace {

using nlohmann::json;

std::string error_of(const std::string& line) {
  AdmitCases cases;
  const Result<std::string> answer = cases.answer(line);
  EXPECT_FALSE(answer.ok()) << *answer;
  return answer.ok() ? "" : answer.message();
}

std::string answer_of(const std::string& line) {
  AdmitCases cases;
  const Result<std::string> answer = cases.answer(line);
  EXPECT_TRUE(answer.ok()) << answer.message();
  return answer.ok() ? *answer : "";
}

TEST(AdmitCases, AnswersHintsWithThePolicyOfTheCase) {
  EXPECT_EQ(answer_of(R"({"id":"a","policy":"restricted","numa_nodes":[0,1],
                          "hints":{"gpu":[{"mask":[1],"preferred":true}],"cpu":"nil"}})"),
            R"({"id":"a","admit":true,"affinity":[1],"preferred":true,"reason":"","devices":null})");
}

TEST(AdmitCases, WithoutAPolicyEveryOneIsAnswered) {
  const json answer = json::parse(answer_of(R"({"id":7,"numa_nodes":[0,1],"hints":{"gpu":[]}})"));
  EXPECT_EQ(answer["id"], 7);
  EXPECT_EQ(answer["result"]["best-effort"]["admit"], true);
  EXPECT_EQ(answer["result"]["restricted"]["reason"], "TopologyAffinityError");
  EXPECT_EQ(answer["result"]["single-numa-node"]["affinity"], nullptr);
}

TEST(AdmitCases, TellsResourcesThatNoManagerKnows) {
  const json answer = json::parse(answer_of(R"({"id":1,"policy":"none","node":{"numa":[{"id":0}]},
      "pod":{"containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpus":1}}}]}})"));
  EXPECT_EQ(answer["ignored"], json({"nvidia.com/gpus"}));
}

TEST(AdmitCases, ReadsAPodOfKubernetes) {
  // Requests come from the limits; the class is Guaranteed because cpu and memory are limited.
  const json answer = json::parse(answer_of(R"({"id":1,"policy":"restricted","cpu":"static",
      "node":{"numa":[{"id":0,"cpus":"0-3,8-11"},{"id":1,"cpus":"4-7,12-15"}],"reserved_cpus":"0","cores":
              ["0,8","1,9","2,10","3,11","4,12","5,13","6,14","7,15"]},
      "pod":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},
             "spec":{"containers":[{"name":"c","image":"x","resources":{"limits":{"cpu":"8","memory":"1Gi"}}}]}}})"));
  EXPECT_EQ(answer["affinity"], json({1}));
  EXPECT_EQ(answer["containers"][0]["cpus"], "4-7,12-15");
}

TEST(AdmitCases, AReservationByCountIsTakenAsKubeletTakesIt) {
  // Two reserved CPUs are the two threads of the first core; eight CPUs are left on node 1 only.
  const json answer = json::parse(answer_of(R"({"id":1,"policy":"none","cpu":"static",
      "node":{"numa":[{"id":0,"cpus":"0-3"}],"threads_per_core":2,"reserved_cpus":2},
      "pod":{"containers":[{"name":"c","resources":{"limits":{"cpu":"2","memory":"1Gi"}}}]}})"));
  EXPECT_EQ(answer["containers"][0]["cpus"], "2-3");
}

TEST(AdmitCases, SaysWhatIsWrongAndWhatIsAllowed) {
  EXPECT_EQ(error_of("{"), "not JSON: byte 2 is not what must come there");
  EXPECT_EQ(error_of("[]"), "case: is a list; allowed: an object");
  EXPECT_EQ(error_of(R"({"numa_nodes":[0],"hints":{}})"), "id: must be a string or a whole number");
  EXPECT_EQ(error_of(R"({"id":1})"), "case: needs either hints and numa_nodes, or node and pod");
  EXPECT_EQ(error_of(R"({"id":1,"polcy":"none"})").substr(0, 37), "case: unknown key \"polcy\"; known: id,");
  EXPECT_EQ(error_of(R"({"id":1,"policy":"best","hints":{},"numa_nodes":[0]})"),
            "policy: unknown topology manager policy \"best\"; known: none, best-effort, restricted, single-numa-node");
  EXPECT_EQ(error_of(R"({"id":1,"hints":{"gpu":[{"mask":[2]}]},"numa_nodes":[0,1]})"),
            "hints.gpu.mask: names a NUMA node that is not in numa_nodes");
  EXPECT_EQ(error_of(R"({"id":1,"hints":{"gpu":"some"},"numa_nodes":[0]})"),
            "hints.gpu: is \"some\"; allowed: a list of hints, null, \"nil\", \"no key\"");
  EXPECT_EQ(error_of(R"({"id":1,"options":{"prefer-closest-numa-nodes":true},"hints":{},"numa_nodes":[0,3]})"),
            "distances: prefer-closest-numa-nodes needs a row of distances 0..3 for every NUMA node");
}

TEST(AdmitCases, RefusesNodesThatContradictThemselves) {
  const auto with_node = [](const std::string& node) {
    return error_of(R"({"id":1,"policy":"none","node":)" + node + R"(,"pod":{"containers":[]}})");
  };
  EXPECT_EQ(with_node(R"({"numa":[]})"), "node.numa: must be a list of 1 to 64 NUMA nodes");
  EXPECT_EQ(with_node(R"({"numa":[{"id":0},{"id":0}]})"), "node.numa[1].id: 0 appears twice");
  EXPECT_EQ(with_node(R"({"numa":[{"id":64}]})"), "node.numa[0].id: is 64; allowed: whole numbers 0..63");
  EXPECT_EQ(with_node(R"({"numa":[{"id":0,"cpus":"0-3"},{"id":1,"cpus":"3-5"}]})"), "node.numa: CPU 3 appears twice");
  EXPECT_EQ(with_node(R"({"numa":[{"id":0,"cpus":"5-2"}]})"),
            "node.numa[0].cpus: is \"5-2\"; allowed: a CPU list like 0-3,8 with ids below 1024");
  EXPECT_EQ(with_node(R"({"numa":[{"id":0,"cpus":"0-3"}],"cores":["0-1","1-3"]})"),
            "node.cores: CPU 1 is in two groups");
  EXPECT_EQ(with_node(R"({"numa":[{"id":0,"memory":{"memory":"1Gi"},"free":{"memory":"2Gi"}}]})"),
            "node.numa[0].free: is more than memory");
  EXPECT_EQ(with_node(R"({"numa":[{"id":0}],"devices":{"gpu":[{"id":"a"},{"id":"a"}]}})"),
            "node.devices.gpu: id \"a\" appears twice");
  EXPECT_EQ(with_node(R"({"numa":[{"id":0}],"devices":{"gpu":{"devices":[{"id":"a"}],"prefer":["b"]}}})"),
            "node.devices.gpu.prefer: names \"b\", which is no device of the resource");
}

TEST(AdmitCases, RefusesPodsThatCannotBe) {
  const auto with_pod = [](const std::string& pod) {
    return error_of(R"({"id":1,"policy":"none","node":{"numa":[{"id":0}],"devices":{"gpu":[{"id":"a"}]}},"pod":)" +
                    pod + "}");
  };
  EXPECT_EQ(with_pod("[]"), "pod: must be an object");
  EXPECT_EQ(with_pod("{}"), "pod.containers: is missing");
  EXPECT_EQ(with_pod(R"({"containers":[{"name":"c"},{"name":"c"}]})"), "pod: two containers are named \"c\"");
  EXPECT_EQ(with_pod(R"({"containers":[{"name":"c","resources":{"limits":{"gpu":"half"}}}]})").substr(0, 37),
            "pod.containers[0].limits.gpu: invalid");
  EXPECT_EQ(with_pod(R"({"containers":[{"name":"c","resources":{"limits":{"gpu":"500m"}}}]})"),
            "pod.containers[0].limits.gpu: is \"500m\"; allowed: whole amounts from 0");
  EXPECT_EQ(with_pod(R"({"containers":[],"qosClass":"Gold"})"),
            "pod.qosClass: is \"Gold\"; known: Guaranteed, Burstable, BestEffort");
}

}  // namespace
}  // namespace mortise::topology
