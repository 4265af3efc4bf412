#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/support/for_all.h"
#include "tests/unit/extender/test_cluster.h"

namespace mortise::extender {
namespace {

using nlohmann::json;

/// Names as a caller may send them: known, unknown, empty, repeated, awkward to spell.
std::vector<std::string> some_names() {
  const auto name =
      rc::gen::oneOf(rc::gen::elementOf(std::vector<std::string>{"big-a", "big-b", "small", "plain"}),
                     rc::gen::elementOf(std::vector<std::string>{"", "x", "nöd", "a\"b", "\\", "\t", "%s"}));
  return *rc::gen::container<std::vector<std::string>>(name);
}

json some_pod() {
  const auto amounts = std::vector<std::string>{"0", "1", "2", "8", "9", "1k", "-1", "0.5", "%"};
  json pod = {{"metadata", {{"name", "p"}, {"uid", *rc::gen::elementOf(std::vector<std::string>{"", "u1", "u2"})}}}};
  const json resources = {{"limits", {{"nvidia.com/gpu", *rc::gen::elementOf(amounts)}}}};
  pod["spec"]["containers"] = json::array({{{"name", "c"}, {"resources", resources}}});
  const auto modes = std::vector<std::string>{"decisive", "decisive", "advisory", "neither"};
  pod["metadata"]["annotations"]["mortise.dev/placement"] = *rc::gen::elementOf(modes);
  return pod;
}

json request(const json& pod, const std::vector<std::string>& names, bool as_objects) {
  json out = {{"Pod", pod}, {"Nodes", nullptr}, {"NodeNames", nullptr}};
  if (!as_objects) {
    out["NodeNames"] = names;
    return out;
  }
  out["Nodes"]["items"] = json::array();
  for (const std::string& name : names) out["Nodes"]["items"].push_back({{"metadata", {{"name", name}}}});
  return out;
}

/// How often each node is in a filter result.
std::map<std::string, int> answered(const json& result) {
  std::map<std::string, int> count;
  if (!result["NodeNames"].is_null()) {
    for (const json& name : result["NodeNames"]) ++count[name];
  }
  if (!result["Nodes"].is_null()) {
    for (const json& node : result["Nodes"]["items"]) ++count[node["metadata"]["name"]];
  }
  for (const char* map : {"FailedNodes", "FailedAndUnresolvableNodes"}) {
    for (const auto& [name, reason] : result[map].items()) {
      RC_ASSERT(reason.get<std::string>().find('%') == std::string::npos);
      ++count[name];
    }
  }
  return count;
}

TEST(FilterAnswerProperty, EveryRequestedNodeIsThereExactlyOnceWhateverWasAskedBefore) {
  test::for_all(300, [] {
    TestCluster cluster("best-fit");
    cluster.occupy("big-b", *rc::gen::inRange(0, 9));
    const int questions = *rc::gen::inRange(1, 8);
    for (int i = 0; i < questions; ++i) {
      const std::vector<std::string> names = some_names();
      const json body = request(some_pod(), names, *rc::gen::arbitrary<bool>());
      const json result = json::parse(cluster.service().filter(body.dump()).body);
      RC_ASSERT(result["Error"] == "");
      std::map<std::string, int> expected;
      for (const std::string& name : names) expected[name] = 1;
      RC_ASSERT(answered(result) == expected);
      cluster.clock().advance(*rc::gen::inRange(0, 700) * kSecond);
    }
  });
}

TEST(FilterAnswerProperty, ADecisiveAnswerNamesOneNodeIfAnyFits) {
  test::for_all(300, [] {
    TestCluster cluster("best-fit");
    cluster.occupy("big-a", *rc::gen::inRange(0, 9));
    cluster.occupy("small", *rc::gen::inRange(0, 3));
    const auto gpus = *rc::gen::inRange(1, 9);
    for (int i = 0; i < 6; ++i) {
      const std::vector<std::string_view> all = {"big-a", "big-b", "small", "plain"};
      int fitting = 0;
      for (const std::string_view name : all) fitting += cluster.free_gpus(std::string(name)) >= gpus;
      const FilterAnswer answer = cluster.handlers().filter(ask("u1", gpus, all));
      RC_ASSERT(with_verdict(answer.result, Verdict::kPassed).size() == (fitting > 0 ? 1U : 0U));
    }
  });
}

TEST(PriorityProperty, AdvisoryScoresAreWithinTheContractAndTheBestHasTen) {
  test::for_all(300, [] {
    TestCluster cluster("best-fit");
    cluster.occupy("big-a", *rc::gen::inRange(0, 9));
    json pod = some_pod();
    pod["metadata"]["annotations"]["mortise.dev/placement"] = "advisory";
    pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "1";
    const std::vector<std::string> names = some_names();
    const json result = json::parse(cluster.service().prioritize(request(pod, names, false).dump()).body);
    std::set<std::string> hosts;
    int best = 0;
    for (const json& entry : result) {
      RC_ASSERT(hosts.insert(entry["Host"]).second);
      RC_ASSERT(entry["Score"].is_number_integer());
      const int score = entry["Score"];
      RC_ASSERT(score >= 0);
      RC_ASSERT(score <= 10);
      best += score == 10;
    }
    RC_ASSERT(hosts == std::set<std::string>(names.begin(), names.end()));
    bool some_fit = false;
    for (const char* name : {"big-a", "big-b", "small"})
      some_fit |= hosts.contains(name) && cluster.free_gpus(name) > 0;
    RC_ASSERT(best == (some_fit ? 1 : 0));
  });
}

}  // namespace
}  // namespace mortise::extender
