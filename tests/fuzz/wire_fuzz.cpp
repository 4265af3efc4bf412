// The request codec for every verb, and the handlers behind it: whatever comes in, each answer is valid JSON, and a
// filter answer that is no error has every requested node exactly once; preempt names requested nodes only and leaves
// the cluster as it was.
#include <cstdint>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "scheduler/base/clock.h"
#include "scheduler/extender/handlers.h"
#include "scheduler/extender/metrics.h"
#include "scheduler/extender/service.h"
#include "scheduler/extender/wire.h"
#include "scheduler/extender/wire_preempt.h"
#include "scheduler/placement/engine.h"
#include "scheduler/placement/fragmentation.h"
#include "scheduler/placement/policy.h"

namespace {

using namespace mortise;
using nlohmann::json;

void require(bool holds) {
  if (!holds) std::abort();
}

class SmallCluster {
 public:
  SmallCluster() {
    for (const auto& [name, gpus] : {std::pair{"n1", 8}, {"n2", 2}, {"n3", 0}}) {
      placement::NodeSpec spec{name, 64'000, 256 * 1024 * kMiB, 110, gpus, gpus > 0 ? "A100" : ""};
      require(cluster_.add_node(spec, cluster_.node_count()).ok());
    }
    hold("held", *cluster_.find_node("n1"), 8);
    hold("half", *cluster_.find_node("n2"), 1);
  }
  extender::Service& service() { return service_; }
  const placement::ClusterState& cluster() const { return cluster_; }

 private:
  void hold(const std::string& uid, NodeId node, std::int32_t gpus) {
    placement::PodRequest pod;
    pod.gpus = gpus;
    pod.uid = uid;
    pod.ns = "default";
    pod.name = uid;
    require(cluster_.state_of(node).whole_free() >= gpus);
    bookings_.bound(pod, cluster_.node_name(node), {}, {});
  }

  ManualClock clock_;
  placement::TypicalPods typical_;
  placement::ClusterState cluster_;
  placement::Engine engine_{cluster_, *placement::make_policy("best-fit", typical_), 1};
  placement::FragmentationMeter meter_{cluster_, typical_};
  extender::Bookings bookings_{cluster_};
  extender::Handlers handlers_{engine_, bookings_, clock_};
  extender::Metrics metrics_;
  extender::Service service_{handlers_, cluster_, meter_, metrics_, clock_};
};

/// Empty when the answer sends a number back that this checker's parser cannot hold; JSON itself has no limit.
std::optional<json> parse_answer(const std::string& text) {
  try {
    return json::parse(text);
  } catch (const json::out_of_range&) {
    return std::nullopt;
  }
}

void check_filter(const std::string& request, const std::string& reply) {
  const std::optional<json> answer = parse_answer(reply);
  if (!answer || !answer->at("Error").get<std::string>().empty()) return;
  std::string copy = request;
  const auto args = extender::read_extender_args(copy);
  require(args.ok());
  std::map<std::string, int> expected;
  for (const extender::AskedNode& node : args->nodes) expected[std::string(node.name)] = 1;
  std::map<std::string, int> found;
  for (const char* failed : {"FailedNodes", "FailedAndUnresolvableNodes"}) {
    for (const auto& [name, reason] : answer->at(failed).items()) ++found[name];
  }
  // The answer has Nodes and NodeNames as the request does, so the codec reads what passed. A node asked for in both
  // forms passes in both.
  std::string passed_text = reply;
  const auto passed = extender::read_extender_args(passed_text);
  require(passed.ok());
  std::map<std::string, int> passed_once;
  for (const extender::AskedNode& node : passed->nodes) passed_once[std::string(node.name)] = 1;
  for (const auto& [name, once] : passed_once) found[name] += once;
  require(found == expected);
}

void check_preempt(SmallCluster& cluster, const std::string& request) {
  const StateId before = cluster.cluster().node_state(NodeId{0});
  const extender::Reply reply = cluster.service().preempt(request);
  require(cluster.cluster().check().ok() && cluster.cluster().node_state(NodeId{0}) == before);
  require(reply.status == 400 || reply.status == 200);
  if (reply.status != 200) return;
  std::string copy = request;
  const auto args = extender::read_preemption_args(copy);
  require(args.ok());
  std::set<std::string> asked;
  for (const extender::PreemptionCandidate& candidate : args->candidates) asked.emplace(candidate.node);
  const json answer = json::parse(reply.body).at("NodeNameToMetaVictims");
  for (const auto& [node, victims] : answer.items()) {
    require(asked.contains(node) && victims.at("NumPDBViolations").is_number_integer());
    for (const json& pod : victims.at("Pods")) require(pod.at("UID").is_string());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string body(reinterpret_cast<const char*>(data), size);
  // Asked three times and bound in between, so that the memory of asked and bound pods is on the way.
  SmallCluster cluster;
  check_preempt(cluster, body);
  for (int i = 0; i < 3; ++i) {
    const extender::Reply filtered = cluster.service().filter(body);
    require(filtered.status == 200);
    check_filter(body, filtered.body);
    const extender::Reply bound = cluster.service().bind(body);
    require(bound.status == 200 && json::parse(bound.body).at("Error").is_string());
  }
  check_preempt(cluster, body);
  const extender::Reply scored = cluster.service().prioritize(body);
  require(scored.status == 400 || (scored.status == 200 && json::parse(scored.body).is_array()));
  return 0;
}
