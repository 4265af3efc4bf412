#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "scheduler/extender/question.h"
#include "scheduler/extender/wire.h"
#include "tests/support/shared_data.h"
#include "tests/unit/extender/test_cluster.h"

namespace mortise::extender {
namespace {

using nlohmann::json;

/// What a document says when read as each of our requests, one word per reading.
std::string as_requests(const std::string& text) {
  std::string body = text;
  const auto question = read_question(body);
  std::string out = question.ok() ? "filter args: pod " + question->pod.name + ", " +
                                        std::to_string(question->args.nodes.size()) + " nodes"
                                  : "no filter args (" + question.message() + ")";
  body = text;
  const auto binding = read_binding_args(body);
  if (!binding.ok()) return out + "; no binding args (" + binding.message() + ")";
  if (binding->node.empty()) return out + "; no binding args (no Node)";
  return out + "; binding args: pod " + binding->pod_namespace + "/" + binding->pod_name + " UID " + binding->pod_uid +
         " to " + binding->node;
}

/// The kube-scheduler simulator keeps filter results under the extender's URL; the names of those inside.
std::string passed_nodes(const json& document) {
  std::string out;
  for (const auto& [url, result] : document.items()) {
    for (const json& node : result.at("Nodes").at("items"))
      out += node.at("metadata").at("name").get<std::string>() + " ";
  }
  return out;
}

// What each file is comes from its row in fixtures/INDEX.csv.
const std::map<std::string, std::string> kExpected = {
    {"doc-filter-result-lowercase.json", "no filter args (request has no Pod); no binding args (no Node)"},
    {"hami-filter-args-lowercase.json", "filter args: pod gpu-workload, 2 nodes; no binding args (no Node)"},
    {"k8s-types-ExtenderBindingArgs.json",
     "no filter args (request has no Pod); binding args: pod mypodnamespace/mypodname UID mypoduid to mynode"},
    {"k8s-types-ExtenderFilterResult.json", "no filter args (request has no Pod); no binding args (no Node)"},
    {"k8s-types-ExtenderPreemptionArgs.json", "filter args: pod podname, 0 nodes; no binding args (no Node)"},
    {"k8s-types-ExtenderPreemptionResult.json", "no filter args (request has no Pod); no binding args (no Node)"},
    {"k8s-types-HostPriority.json", "no filter args (request has no Pod); no binding args (no Node)"},
    {"kss-filter-result-annotation.json", "no filter args (request has no Pod); no binding args (no Node)"},
};

TEST(ExchangeFixtures, EachIsReadRightlyOrRefusedWithAClearLine) {
  const auto shared = test::shared_dir();
  if (!shared) GTEST_SKIP() << "no ../shared folder (or MORTISE_SHARED)";
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*shared / "fixtures/extender-exchanges")) {
    const std::string name = entry.path().filename();
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    std::string found = as_requests(text);
    std::printf("%s: %s\n", name.c_str(), found.c_str());
    const auto expected = kExpected.find(name);
    ASSERT_NE(expected, kExpected.end()) << name << " is new here";
    EXPECT_EQ(found, expected->second) << name;
    if (name.starts_with("kss-")) {
      EXPECT_EQ(passed_nodes(json::parse(text)), "node-tzjll ");
    }
    ++files;
  }
  EXPECT_EQ(files, kExpected.size());
}

// Both forms are filled in, the whole Pod without a UID. A pod without containers gets back what is proposed, and that
// is the protocol's document of the result.
TEST(ExchangeFixtures, TheProtocolsOwnPreemptionArgsGetItsOwnResult) {
  const auto shared = test::shared_dir();
  if (!shared) GTEST_SKIP() << "no ../shared folder (or MORTISE_SHARED)";
  const auto text_of = [&](const char* name) {
    std::ifstream in(*shared / "fixtures/extender-exchanges" / name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  TestCluster cluster;
  const Reply reply = cluster.service().preempt(text_of("k8s-types-ExtenderPreemptionArgs.json"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(json::parse(reply.body), json::parse(text_of("k8s-types-ExtenderPreemptionResult.json")));
}

// A pod without spec asks for nothing we manage.
TEST(ExchangeFixtures, TheLowerCaseFilterArgsAreAnswered) {
  const auto shared = test::shared_dir();
  if (!shared) GTEST_SKIP() << "no ../shared folder (or MORTISE_SHARED)";
  std::ifstream in(*shared / "fixtures/extender-exchanges/hami-filter-args-lowercase.json", std::ios::binary);
  TestCluster cluster;
  const Reply reply = cluster.service().filter({std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()});
  EXPECT_EQ(json::parse(reply.body)["NodeNames"], json({"node-a", "node-b"}));
}

}  // namespace
}  // namespace mortise::extender
