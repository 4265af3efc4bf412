#include "scheduler/extender/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/unit/extender/test_cluster.h"

namespace mortise::extender {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const json kAll = {"big-a", "big-b", "small", "plain"};

json container(const json& resources) {
  return {{"name", "c"}, {"resources", resources}};
}

/// Asks for GPUs by limits, as most manifests do.
json gpus(const json& amount) {
  return container({{"limits", {{"nvidia.com/gpu", amount}}}});
}

json sidecar(const json& amount) {
  json out = gpus(amount);
  out["restartPolicy"] = "Always";
  return out;
}

json pod(const std::vector<json>& containers, const std::vector<json>& init_containers = {}) {
  return {{"metadata", {{"namespace", "default"}, {"name", "p"}, {"uid", "u1"}}},
          {"spec", {{"initContainers", init_containers}, {"containers", containers}}}};
}

json filter(TestCluster& cluster, const json& the_pod, const json& names = kAll) {
  const Reply reply = cluster.service().filter(json{{"Pod", the_pod}, {"Nodes", nullptr}, {"NodeNames", names}}.dump());
  EXPECT_EQ(reply.status, 200);
  return json::parse(reply.body);
}

std::string metric(TestCluster& cluster, const std::string& name) {
  const std::string text = cluster.service().metrics_text();
  const std::size_t at = text.find("\n" + name + " ");
  if (at == std::string::npos) return "absent";
  const std::size_t from = at + name.size() + 2;
  return text.substr(from, text.find('\n', from) - from);
}

/// How many GPUs the pod is taken to ask for, found by asking about nodes of 0 to 4 GPUs; 5: more than that.
int counted(const json& the_pod) {
  TestCluster cluster;
  for (int gpus_of_node = 0; gpus_of_node <= 4; ++gpus_of_node) {
    const std::string name = "node-" + std::to_string(gpus_of_node);
    cluster.add(name, gpus_of_node, gpus_of_node > 0 ? "A100" : "");
    const json answer = filter(cluster, the_pod, {name});
    if (answer["NodeNames"] == json{name}) return gpus_of_node;
    EXPECT_TRUE(answer["FailedAndUnresolvableNodes"].contains(name)) << answer;
  }
  return 5;
}

TEST(Counting, SeveralContainersAddUp) {
  EXPECT_EQ(counted(pod({gpus("1"), gpus("2")})), 3);
}

// max(app 1 + sidecar 1, init 1 + the sidecar before it 1)
TEST(Counting, ASidecarStaysBesideWhatComesAfterIt) {
  EXPECT_EQ(counted(pod({gpus("1")}, {sidecar("1"), gpus("1")})), 2);
  EXPECT_EQ(counted(pod({gpus("1")}, {sidecar("1"), gpus("3")})), 4);
}

// max(app 1 + sidecar 1, init 2): the sidecar starts after the init container has ended.
TEST(Counting, ASidecarDeclaredLaterDoesNotAddToAnEarlierStep) {
  EXPECT_EQ(counted(pod({gpus("1")}, {gpus("2"), sidecar("1")})), 2);
}

TEST(Counting, InitContainersRunOneByOneAndLendTheirGpus) {
  EXPECT_EQ(counted(pod({gpus("2")}, {gpus("3"), gpus("1")})), 3);
}

TEST(Counting, InitContainerWithoutGpuChangesNothing) {
  EXPECT_EQ(counted(pod({gpus("1"), gpus("1")}, {container(json::object())})), 2);
}

TEST(Counting, LimitsOnlyRequestsOnlyOrBothAreOneAmount) {
  const json two = {{"nvidia.com/gpu", "2"}};
  EXPECT_EQ(counted(pod({container({{"limits", two}})})), 2);
  EXPECT_EQ(counted(pod({container({{"requests", two}})})), 2);
  EXPECT_EQ(counted(pod({container({{"limits", two}, {"requests", two}})})), 2);
  EXPECT_EQ(counted(pod({container({{"limits", {{"nvidia.com/gpu", "4"}}}, {"requests", two}})})), 2);
}

TEST(Counting, OverheadAndEphemeralContainersAddNoGpus) {
  json the_pod = pod({gpus("1")});
  the_pod["spec"]["overhead"] = {{"nvidia.com/gpu", "2"}, {"cpu", "1"}};
  the_pod["spec"]["ephemeralContainers"] = {gpus("2")};
  EXPECT_EQ(counted(the_pod), 1);
}

TEST(Counting, ZeroIsNone) {
  TestCluster cluster;
  EXPECT_EQ(filter(cluster, pod({gpus("0")}), {"plain", "never-seen"})["NodeNames"], json({"plain", "never-seen"}));
}

TEST(Counting, NullAndMissingContainersAskForNothing) {
  TestCluster cluster;
  for (const json& containers : {json(nullptr), json::array()}) {
    json the_pod = pod({});
    the_pod["spec"]["containers"] = containers;
    EXPECT_EQ(filter(cluster, the_pod, {"plain"})["NodeNames"], json({"plain"}));
  }
  EXPECT_EQ(filter(cluster, json{{"metadata", {{"name", "p"}}}}, {"plain"})["NodeNames"], json({"plain"}));
}

TEST(Quantities, EverySpellingOfAWholeNumberIsThatNumber) {
  for (const char* two : {"2", "2.0", "2000m", "+2", "0.002k", "2e0", "20E-1", "02"}) {
    EXPECT_EQ(counted(pod({gpus(two)})), 2) << two;
  }
  EXPECT_EQ(counted(pod({gpus(2)})), 2);  // a JSON number
}

TEST(Quantities, LargeAmountsAreNotCutOff) {
  TestCluster cluster;
  for (const char* large : {"1k", "1e3", "1Ki", "1Gi", "16Gi", "4294967296", "4294967298", "9223372036854775807"}) {
    const json answer = filter(cluster, pod({gpus(large)}));
    EXPECT_EQ(answer["NodeNames"], json::array()) << large;
    EXPECT_THAT(answer["FailedAndUnresolvableNodes"]["big-a"].get<std::string>(), StartsWith("TooFewGpus:")) << large;
  }
}

TEST(Quantities, WhatIsNoWholeNumberIsRefusedOnEveryNodeWithOneReason) {
  TestCluster cluster;
  for (const char* bad :
       {"0.5", "500m", "1.5", "-1", "", "abc", "1kk", "1 ", "9223372036854775808", "1e30", "50%", "%s"}) {
    const json answer = filter(cluster, pod({gpus(bad)}), {"big-a", "plain", "never-seen"});
    EXPECT_EQ(answer["Error"], "") << bad;
    EXPECT_EQ(answer["NodeNames"], json::array()) << bad;
    EXPECT_EQ(answer["FailedNodes"], json::object()) << bad;
    ASSERT_EQ(answer["FailedAndUnresolvableNodes"].size(), 3U) << bad;
    const std::string reason = answer["FailedAndUnresolvableNodes"]["plain"];
    EXPECT_THAT(reason, AllOf(StartsWith("InvalidRequest: "), Not(HasSubstr("%")))) << bad;
    EXPECT_EQ(answer["FailedAndUnresolvableNodes"]["never-seen"], reason) << bad;
  }
}

TEST(Candidates, NoneGivenIsNoError) {
  TestCluster cluster;
  const std::string the_pod = pod({gpus("1")}).dump();
  for (const char* rest : {R"("Nodes":null,"NodeNames":null)", R"("NodeNames":[])", R"("Nodes":null)"}) {
    const json answer = json::parse(cluster.service().filter(R"({"Pod":)" + the_pod + "," + rest + "}").body);
    EXPECT_EQ(answer["Error"], "") << rest;
    EXPECT_EQ(answer["NodeNames"], json::array()) << rest;
    EXPECT_EQ(answer["Nodes"], nullptr) << rest;
  }
}

TEST(Candidates, AnEmptyListOfNodeObjectsComesBackEmpty) {
  TestCluster cluster;
  const std::string the_pod = pod({gpus("1")}).dump();
  for (const char* nodes : {"{}", R"({"items":null})", R"({"items":[]})"}) {
    const json answer =
        json::parse(cluster.service().filter(R"({"Pod":)" + the_pod + R"(,"Nodes":)" + nodes + "}").body);
    EXPECT_EQ(answer["Error"], "") << nodes;
    EXPECT_EQ(answer["Nodes"]["items"], json::array()) << nodes;
    EXPECT_EQ(answer["NodeNames"], nullptr) << nodes;
  }
}

TEST(Candidates, BothFormsAreAnsweredInBoth) {
  TestCluster cluster;
  const json request = {
      {"Pod", pod({gpus("1")})},
      {"NodeNames", {"big-a", "small"}},
      {"Nodes", {{"items", {{{"metadata", {{"name", "big-a"}}}}, {{"metadata", {{"name", "big-b"}}}}}}}}};
  const json answer = json::parse(cluster.service().filter(request.dump()).body);
  EXPECT_EQ(answer["NodeNames"], json({"big-a"}));
  EXPECT_EQ(answer["Nodes"]["items"], json::parse(R"([{"metadata":{"name":"big-a"}}])"));
  EXPECT_EQ(answer["FailedNodes"].size(), 2U);
}

TEST(Candidates, ANodeWithoutGpusNeverHoldsUpTheOthers) {
  TestCluster cluster;
  const json answer = filter(cluster, pod({gpus("1")}), {"plain", "small"});
  EXPECT_EQ(answer["NodeNames"], json({"small"}));
  EXPECT_EQ(answer["FailedAndUnresolvableNodes"]["plain"], "NoGpu: the node has no GPU");
}

TEST(Errors, FilterAndBindCarryThemInA200) {
  TestCluster cluster;
  for (const char* body : {"", "null", "{}", "[1", R"({"Pod":null,"NodeNames":["big-a"]})", R"({"Pod":"x"})"}) {
    const Reply reply = cluster.service().filter(body);
    EXPECT_EQ(reply.status, 200) << body;
    const json answer = json::parse(reply.body);
    EXPECT_NE(answer["Error"], "") << body;
    EXPECT_EQ(answer["NodeNames"], nullptr) << body;
  }
  EXPECT_EQ(cluster.service().bind("").status, 200);
  EXPECT_EQ(json::parse(cluster.service().bind("").body)["Error"], "request has no body");
}

TEST(Errors, PrioritizeHasNoFieldForThem) {
  TestCluster cluster;
  const Reply reply = cluster.service().prioritize(R"({"NodeNames":["big-a"]})");
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.body, "request has no Pod\n");
}

TEST(Errors, NorHasPreempt) {
  TestCluster cluster;
  for (const char* body : {"", "null", "{}", R"({"Pod":null,"NodeNameToMetaVictims":{}})", R"({"Pod":"x"})",
                           R"({"Pod":{},"NodeNameToMetaVictims":[]})"}) {
    EXPECT_EQ(cluster.service().preempt(body).status, 400) << body;
  }
  EXPECT_EQ(cluster.service().preempt("{}").body, "request has no Pod\n");
  EXPECT_EQ(metric(cluster, R"(mortise_extender_requests_total{outcome="error",verb="preempt"})"), "7");
}

TEST(Preemption, APodThatMayNotPreemptGetsNoCandidates) {
  TestCluster cluster;
  cluster.hold("low", "small", 2, 0);
  json the_pod = pod({gpus("2")});
  the_pod["spec"]["priority"] = 1;
  const auto preempt = [&] {
    const json request = {{"Pod", the_pod}, {"NodeNameToMetaVictims", {{"small", {{"Pods", {{{"UID", "low"}}}}}}}}};
    const Reply reply = cluster.service().preempt(request.dump());
    EXPECT_EQ(reply.status, 200);
    return json::parse(reply.body)["NodeNameToMetaVictims"];
  };
  EXPECT_EQ(preempt(), json::parse(R"({"small":{"Pods":[{"UID":"low"}],"NumPDBViolations":0}})"));
  the_pod["spec"]["preemptionPolicy"] = "Never";
  EXPECT_EQ(preempt(), json::object());
  the_pod["spec"]["preemptionPolicy"] = "PreemptLowerPriority";
  the_pod["spec"]["priority"] = nullptr;  // 0, as that of `low`
  EXPECT_EQ(preempt(), json::object());
  EXPECT_EQ(metric(cluster, R"(mortise_extender_requests_total{outcome="ok",verb="preempt"})"), "3");
}

TEST(Errors, APodOfTheWrongFormFailsTheCall) {
  TestCluster cluster;
  json the_pod = pod({gpus("1")});
  the_pod["spec"]["containers"] = "none";
  EXPECT_THAT(filter(cluster, the_pod)["Error"].get<std::string>(), StartsWith("Pod: "));
}

TEST(Errors, TextsAreShortAndHoldNoFormatCharacters) {
  EXPECT_EQ(answer_text("50% full"), "50 percent full");
  const std::string cut = answer_text(std::string(255, 'x') + "öööö");
  EXPECT_EQ(cut, std::string(255, 'x') + "...");  // not inside a character
}

TEST(Errors, TheNextPodIsServedAfterAnImpossibleOne) {
  TestCluster cluster;
  const json answer = filter(cluster, pod({gpus("64")}));
  EXPECT_EQ(answer["FailedAndUnresolvableNodes"].size(), 4U);
  EXPECT_EQ(filter(cluster, pod({gpus("8")}))["NodeNames"], json({"big-a"}));
}

TEST(MetricsText, CountsRequestsDecisionsAndRefusals) {
  TestCluster cluster;
  EXPECT_EQ(metric(cluster, R"(mortise_extender_requests_total{outcome="ok",verb="filter"})"), "0");
  for (int i = 0; i < 3; ++i) filter(cluster, pod({gpus("1")}));
  filter(cluster, pod({gpus("64")}));
  filter(cluster, pod({gpus("x")}));
  filter(cluster, pod({gpus("0")}));
  cluster.service().filter("");
  cluster.service().prioritize("");
  EXPECT_EQ(metric(cluster, R"(mortise_extender_requests_total{outcome="ok",verb="filter"})"), "6");
  EXPECT_EQ(metric(cluster, R"(mortise_extender_requests_total{outcome="error",verb="filter"})"), "1");
  EXPECT_EQ(metric(cluster, R"(mortise_extender_requests_total{outcome="error",verb="prioritize"})"), "1");
  EXPECT_EQ(metric(cluster, R"(mortise_extender_request_seconds_count{verb="filter"})"), "7");
  EXPECT_EQ(metric(cluster, R"(mortise_extender_decisions_total{decision="placed"})"), "3");
  EXPECT_EQ(metric(cluster, R"(mortise_extender_decisions_total{decision="rejected"})"), "1");
  EXPECT_EQ(metric(cluster, R"(mortise_extender_decisions_total{decision="invalid"})"), "1");
  EXPECT_EQ(metric(cluster, R"(mortise_extender_decisions_total{decision="unmanaged"})"), "1");
  EXPECT_EQ(metric(cluster, R"(mortise_extender_rejections_total{reason="TooFewGpus"})"), "1");
  EXPECT_EQ(metric(cluster, R"(mortise_extender_rejections_total{reason="InvalidRequest"})"), "1");
  EXPECT_EQ(metric(cluster, "mortise_answers_refused_total"), "1");
}

// 8 + 8 + 2 GPUs, of which 3 are taken. Nothing is typical here, so nothing is fragmented.
TEST(MetricsText, ShowsTheCluster) {
  TestCluster cluster;
  cluster.occupy("big-a", 3);
  EXPECT_EQ(metric(cluster, "mortise_cluster_nodes"), "4");
  EXPECT_EQ(metric(cluster, "mortise_cluster_gpus"), "18");
  EXPECT_EQ(metric(cluster, "mortise_cluster_gpus_used"), "3");
  EXPECT_EQ(metric(cluster, "mortise_cluster_fragmentation_gpus"), "0");
}

}  // namespace
}  // namespace mortise::extender
