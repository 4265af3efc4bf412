#include "tests/unit/sim/explain_fixture.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace mortise::sim {

json node(const std::string& name, int gpus) {
  return node(name, gpus, json::object());
}
json node(const std::string& name, int gpus, json labels) {
  return {{"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata", {{"name", name}, {"labels", std::move(labels)}}},
          {"status",
           {{"allocatable",
             {{"cpu", "64"}, {"memory", "512Gi"}, {"pods", "110"}, {"nvidia.com/gpu", std::to_string(gpus)}}}}}};
}
json in_rack(const std::string& name, int gpus, const std::string& rack) {
  return node(name, gpus, {{"topology.kubernetes.io/rack", rack}});
}
json pod(const std::string& name, int gpus, const std::string& cpu) {
  json made = {
      {"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", {{"name", name}, {"namespace", "x"}, {"uid", name}}}};
  json container = {{"name", "c"}, {"resources", {{"requests", {{"cpu", cpu}}}}}};
  if (gpus > 0) container["resources"]["limits"]["nvidia.com/gpu"] = std::to_string(gpus);
  made["spec"]["containers"] = json::array({std::move(container)});
  return made;
}
json on_node(json made, const std::string& node_name) {
  made["spec"]["nodeName"] = node_name;
  made["status"]["phase"] = "Running";
  return made;
}
json member(const std::string& name, const std::string& gang, int minimum, int gpus, const std::string& cpu) {
  json made = pod(name, gpus, cpu);
  made["metadata"]["annotations"] = {{"mortise.dev/gang-name", gang},
                                     {"mortise.dev/gang-min-member", std::to_string(minimum)}};
  return made;
}
std::vector<json> gang(const std::string& name, int members, int gpus, const std::string& required) {
  std::vector<json> made;
  for (int i = 0; i < members; ++i) {
    made.push_back(member(name + std::to_string(i), name, members, gpus));
    if (!required.empty()) made.back()["metadata"]["annotations"]["mortise.dev/topology-required"] = required;
  }
  return made;
}

void Explain::write_list(const std::string& name, const std::vector<json>& items) const {
  write(name, json({{"apiVersion", "v1"}, {"kind", "List"}, {"items", items}}).dump());
}

Ran Explain::run(const std::vector<std::string>& arguments) {
  return run_program({"explain", "--policy", "best-fit"}, arguments);
}

json Explain::explain(const std::vector<json>& cluster, const std::vector<json>& pods,
                      const std::vector<std::string>& more) {
  write_list("cluster.json", cluster);
  write_list("pods.json", pods);
  std::vector<std::string> arguments = {"--cluster", path("cluster.json"), "--pod", path("pods.json"), "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  ran_ = run(arguments);
  if (ran_.code == kExitBad) return ran_.err;
  const json answer = json::parse(ran_.out);
  EXPECT_EQ(ran_.code, answer.at("fits").get<bool>() ? kExitDone : kExitNo);
  return answer;
}
std::string Explain::refused(const std::vector<json>& cluster, const std::vector<json>& pods) {
  const json answer = explain(cluster, pods);
  EXPECT_EQ(ran_.code, kExitBad) << ran_.out;
  EXPECT_EQ(ran_.out, "");
  EXPECT_EQ(std::count(ran_.err.begin(), ran_.err.end(), '\n'), 1) << ran_.err;
  return ran_.err;
}

std::string Explain::change(const json& answer, const std::string& kind) {
  for (const json& change : answer.at("changes")) {
    if (change.at("kind") == kind) return change.at("detail");
  }
  return "";
}
std::vector<std::string> Explain::places(const json& answer) {
  std::vector<std::string> lines;
  for (const json& place : answer.at("places")) {
    lines.push_back(place.at("pod").get<std::string>() + " " + place.at("node").get<std::string>() + " " +
                    place.at("devices").get<std::string>());
  }
  return lines;
}

Explain::Counts Explain::counts(const json& answer) {
  Counts found;
  for (const json& place : answer.at("places")) ++found[place.at("node")];
  return found;
}

}  // namespace mortise::sim
