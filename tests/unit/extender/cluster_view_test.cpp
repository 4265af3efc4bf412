#include "scheduler/extender/cluster_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "scheduler/extender/admin_token.h"
#include "scheduler/extender/http_server.h"
#include "scheduler/topology/sources/synthetic.h"
#include "tests/unit/extender/raw_client.h"
#include "tests/unit/extender/test_cluster.h"

namespace mortise::extender {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

json parsed(const Reply& reply, int status = 200) {
  EXPECT_EQ(reply.status, status);
  return json::parse(reply.body);
}

std::string filter_text(const std::string& name, int gpus) {
  return R"({"Pod":{"metadata":{"namespace":"team","name":")" + name + R"(","uid":"uid-)" + name +
         R"(","annotations":{"secret":"do-not-tell"}},"spec":{"containers":[{"name":"c","resources":{"limits":)" +
         R"({"nvidia.com/gpu":")" + std::to_string(gpus) + R"("}}}]}},"NodeNames":["big-a","big-b","small","plain"]})";
}

class ClusterViewTest : public testing::Test {
 protected:
  TestCluster cluster_;
  ClusterView view_{cluster_.view_parts()};
};

// 18 GPUs on big-a (8), big-b (8) and small (2); 3 of big-a are taken.
TEST_F(ClusterViewTest, TheClusterInNumbers) {
  cluster_.occupy("big-a", 3);
  const json found = parsed(view_.cluster());
  EXPECT_EQ(found["nodes"], 4);
  EXPECT_EQ(found["gpus"], 18);
  EXPECT_EQ(found["gpus_used"], 3.0);
  EXPECT_EQ(found["gpus_wholly_free"], 15);
  EXPECT_EQ(found["allocation_pct"], 16.67);
  EXPECT_EQ(found["states"], 4);
  EXPECT_EQ(found["pods"], 1);
  EXPECT_EQ(found["nodes_topology_unknown"], 3);
  EXPECT_EQ(found["headroom"], json::parse(R"({"pods_by_gpus":{"1":15,"2":7,"4":3,"8":1},"free_nodes":2})"));
  EXPECT_EQ(found["ready"], false);
  cluster_.readiness().set_met(Readiness::Condition::kSynced);
  cluster_.readiness().set_met(Readiness::Condition::kLeader);
  EXPECT_EQ(parsed(view_.cluster())["ready"], true);
}

TEST_F(ClusterViewTest, ANodeInNumbers) {
  cluster_.occupy("small", 1);
  const json found = parsed(view_.node("small"));
  EXPECT_EQ(found["gpu_model"], "T4");
  EXPECT_EQ(found["free_milli_gpu_by_device"], json({0, 1000}));
  EXPECT_EQ(found["gpus_wholly_free"], 1);
  EXPECT_EQ(found["pods"], json::parse(R"({"held":1,"most":110})"));
  EXPECT_EQ(found["cpu_milli"], json::parse(R"({"free":64000,"allocatable":64000})"));
  EXPECT_EQ(found["memory_bytes"]["allocatable"], 274877906944);
  EXPECT_EQ(found["kubelet"], json::parse(R"({"topology_policy":"unknown"})"));
  EXPECT_EQ(found["takes_no_gpu_pods_because"], nullptr);
  EXPECT_EQ(found["states_believed"]["count"], 1);
  EXPECT_EQ(found["last_observed"], nullptr);
  EXPECT_THAT(std::string(parsed(view_.node("other"), 404)["error"]), HasSubstr("no node \"other\""));
}

TEST_F(ClusterViewTest, ClosedNodesSayWhy) {
  placement::NodeSpec spec{"blocked", 1000, kMiB, 110, 2, "T4"};
  spec.blocked = true;
  ASSERT_TRUE(cluster_.view_parts().cluster.add_node(spec, 10).ok());
  spec.name = "cordoned";
  spec.blocked = false;
  spec.schedulable = false;
  ASSERT_TRUE(cluster_.view_parts().cluster.add_node(spec, 11).ok());
  EXPECT_THAT(std::string(parsed(view_.node("blocked"))["takes_no_gpu_pods_because"]), HasSubstr("NodeBlocked"));
  EXPECT_THAT(std::string(parsed(view_.node("cordoned"))["takes_no_gpu_pods_because"]), HasSubstr("Cordoned"));
  const json found = parsed(view_.cluster());
  EXPECT_EQ(found["nodes_blocked"], 1);
  EXPECT_EQ(found["nodes_cordoned"], 1);
}

// Kubelet may have given a pod of 2 any two GPUs of either NUMA node: not one state, but several.
TEST_F(ClusterViewTest, WhatIsBelievedOfAKubeletIsTold) {
  placement::TopologySpec topology;
  topology.kubelet.policy = topology::TopologyPolicy::kRestricted;
  topology.kubelet.scope = topology::TopologyScope::kPod;
  topology.policy_assumed = true;
  placement::NodeTopologyTable table;
  placement::NodeSpec spec{"numa", 64'000, 128 * 1024 * kMiB, 110, 8, "A100"};
  spec.topology = *table.intern(topology::read_synthetic("numa:2 cpu:16 memory:64Gi gpu:4", "test")->machine, topology);
  placement::ClusterState& state = cluster_.view_parts().cluster;
  const NodeId node = *state.add_node(spec, 10);
  placement::PodRequest pod;
  pod.gpus = 2;
  placement::DeviceSet devices;
  devices.insert(0);
  devices.insert(1);
  ASSERT_TRUE(state.apply(state.intern(pod), node, devices, placement::Knowledge::kUnknown).ok());
  const json found = parsed(view_.node("numa"));
  EXPECT_EQ(found["kubelet"]["topology_policy"], "restricted");
  EXPECT_EQ(found["kubelet"]["scope"], "pod");
  EXPECT_EQ(found["kubelet"]["policy_assumed"], true);
  EXPECT_EQ(parsed(view_.cluster())["nodes_topology_unknown"], 4);  // three without any topology, and this one
  EXPECT_GT(found["states_believed"]["count"], 1);
}

TEST_F(ClusterViewTest, AWaitingPodIsExplained) {
  cluster_.occupy("big-a", 8);
  cluster_.occupy("big-b", 6);
  cluster_.service().filter(filter_text("train", 4));
  const json found = parsed(view_.explain("team", "train"));
  EXPECT_EQ(found["fits"], false);
  EXPECT_EQ(found["main_reason"], "InsufficientGpu");
  json nodes;
  for (const json& reason : found["reasons"]) nodes[std::string(reason["reason"])] = reason["nodes"];
  EXPECT_EQ(nodes, json::parse(R"({"InsufficientGpu":2,"TooFewGpus":1,"NoGpu":1})"));
  EXPECT_THAT(found.dump(), Not(HasSubstr("do-not-tell")));
  cluster_.service().filter(filter_text("small-job", 1));
  EXPECT_EQ(parsed(view_.explain("team", "small-job"))["planned_node"], "big-b");
  EXPECT_EQ(parsed(view_.explain("team", "small-job"))["nodes_that_fit"], 2);
  parsed(view_.explain("team", "unheard-of"), 404);
  parsed(view_.explain("", "train"), 404);
  parsed(view_.explain("team", ""), 400);
}

TEST_F(ClusterViewTest, ThePageHasTheNumbersAndLoadsNothing) {
  cluster_.occupy("big-a", 3);
  cluster_.readiness().set_unmet(Readiness::Condition::kSynced, "<watch> & wait");
  const std::string page = view_.page(true).body;
  EXPECT_THAT(page, HasSubstr("<th scope=\"row\">pods of 2 GPUs</th><td>7</td>"));
  EXPECT_THAT(page, HasSubstr("<th scope=\"row\">used</th><td>3.0</td>"));
  EXPECT_THAT(page, HasSubstr("synced: &lt;watch&gt; &amp; wait"));
  EXPECT_THAT(page, HasSubstr("name=\"viewport\""));
  for (const char* outside : {"<script", "src=", "http:", "https:", "@import", "<link"}) {
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  }
}

TEST(ClusterPage, LargeNumbersAreGrouped) {
  ClusterFigures figures;
  figures.totals.nodes = 100'000;
  figures.totals.gpus = 1'234'567;
  const std::string page = cluster_page(figures, {}, "");
  EXPECT_THAT(page, HasSubstr("<td>100,000</td>"));
  EXPECT_THAT(page, HasSubstr("<td>1,234,567</td>"));
}

TEST_F(ClusterViewTest, MetricsPassThePrometheusLinter) {
  cluster_.service().filter(filter_text("train", 4));
  cluster_.service().filter(filter_text("impossible", 64));
  cluster_.metrics().set_tls(false, 1'800'000'000);
  cluster_.metrics().count_connections(ListenerSide::kAdmin, 1);
  for (const std::uint64_t lists : {1U, 3U}) {
    cluster_.metrics().set_watches({{"pods", kSecond / 2, 70, lists, 2}});
  }
  ClusterFigures seen;
  seen.observed[static_cast<std::size_t>(Witness::kDcgm)] = {3, 1};
  seen.failed_queries = 2;
  cluster_.metrics().set_figures(seen);
  const std::string text = view_.metrics().body;
  EXPECT_THAT(text, HasSubstr("\nmortise_observations_total{source=\"dcgm\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("\nmortise_prediction_mismatch_total{source=\"dcgm\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nmortise_prediction_mismatch_total{source=\"nrt\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("\nmortise_dcgm_query_failures_total 2\n"));
  EXPECT_THAT(text, HasSubstr("\nmortise_watch_lag_seconds{resource=\"pods\"} 0.5\n"));
  EXPECT_THAT(text, HasSubstr("\nmortise_watch_lists_total{resource=\"pods\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("\nmortise_reservations 0\n"));
  EXPECT_THAT(text, HasSubstr("\nmortise_cluster_headroom_pods{gpus=\"8\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("\nmortise_cluster_free_nodes 3\n"));
  EXPECT_THAT(text, HasSubstr("\nmortise_extender_rejections_total{reason=\"TooFewGpus\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nmortise_tls_certificate_expiration_timestamp_seconds 1800000000\n"));
  if (std::system("command -v promtool >/dev/null 2>&1") != 0) GTEST_SKIP() << "no promtool (Debian: prometheus)";
  const std::string path = testing::TempDir() + "mortise-metrics-" + std::to_string(getpid());
  std::ofstream(path) << text;
  FILE* linter = popen(("promtool check metrics <" + path + " 2>&1").c_str(), "r");
  std::string complaints;
  for (int c = std::fgetc(linter); c != EOF; c = std::fgetc(linter)) complaints += static_cast<char>(c);
  EXPECT_EQ(pclose(linter), 0) << complaints;
  EXPECT_EQ(complaints, "");
}

class AdminTest : public ClusterViewTest {
 protected:
  void start(const AdminToken* token) {
    auto started = HttpServer::start_admin(
        cluster_.service(), {"127.0.0.1", 0},
        {.readiness = &cluster_.readiness(), .metrics = &cluster_.metrics(), .view = &view_, .token = token});
    ASSERT_TRUE(started.ok()) << started.message();
    server_ = *std::move(started);
  }
  RawResponse get(const std::string& path, const std::string& fields = "") {
    RawClient client(server_->address());
    client.send("GET " + path + " HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n");
    return client.receive().value_or(RawResponse{});
  }

  std::unique_ptr<HttpServer> server_;
};

TEST_F(AdminTest, EachPathIsServedWithItsType) {
  start(nullptr);
  EXPECT_EQ(get("/v1/cluster").headers.at("content-type"), "application/json");
  EXPECT_THAT(get("/v1/nodes/big-a").body, HasSubstr("\"name\":\"big-a\""));
  EXPECT_THAT(get("/v1/nodes/big%2Da").body, HasSubstr("\"name\":\"big-a\""));
  EXPECT_EQ(get("/v1/nodes/" + std::string(253, 'n')).status, 404);
  EXPECT_EQ(get("/v1/nodes").status, 404);
  const RawResponse page = get("/");
  EXPECT_THAT(page.headers.at("content-type"), HasSubstr("text/html"));
  EXPECT_THAT(page.headers.at("content-security-policy"), HasSubstr("default-src 'none'"));
  // How many more there are depends on how soon the earlier ones are seen to be closed.
  EXPECT_THAT(get("/metrics").body, HasSubstr("mortise_http_connections{listener=\"admin\"} "));
  cluster_.service().filter(filter_text("train", 1));
  EXPECT_THAT(get("/v1/explain?namespace=team&pod=train").body, HasSubstr("\"fits\":true"));
  EXPECT_EQ(get("/v1/explain").status, 400);
}

TEST_F(AdminTest, NamesOfPodsNeedTheTokenWhereThereIsOne) {
  const std::string path = testing::TempDir() + "mortise-token-" + std::to_string(getpid());
  std::ofstream(path) << "0123456789abcdef\n";
  const AdminToken token(path);
  ASSERT_TRUE(token.check().ok()) << token.check().message();
  start(&token);
  cluster_.service().filter(filter_text("train", 1));
  const std::string asked = "/v1/explain?namespace=team&pod=train";
  const RawResponse refused = get(asked);
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.headers.at("www-authenticate"), "Bearer");
  EXPECT_THAT(refused.body, Not(HasSubstr("train")));
  for (const char* wrong : {"Bearer 0123456789abcdeF", "Bearer 0123456789abcde", "Bearer 0123456789abcdef0", "Bearer ",
                            "Basic 0123456789abcdef", "0123456789abcdef"}) {
    EXPECT_EQ(get(asked, "Authorization: " + std::string(wrong) + "\r\n").status, 401) << wrong;
  }
  EXPECT_EQ(get(asked, "Authorization: Bearer 0123456789abcdef\r\n").status, 200);
  EXPECT_EQ(get("/v1/cluster").status, 200) << "no names there";
  std::ofstream(path) << "fedcba9876543210";
  EXPECT_EQ(get(asked, "Authorization: Bearer 0123456789abcdef\r\n").status, 401) << "the token has changed";
  EXPECT_EQ(get(asked, "Authorization: Bearer fedcba9876543210\r\n").status, 200);
  std::remove(path.c_str());
  EXPECT_EQ(get(asked, "Authorization: Bearer fedcba9876543210\r\n").status, 401);
}

TEST(AdminToken, AFileThatIsNoTokenIsRefused) {
  const std::string path = testing::TempDir() + "mortise-bad-token-" + std::to_string(getpid());
  EXPECT_THAT(AdminToken(path + "-missing").check().message(), HasSubstr("cannot be read"));
  for (const std::string& text :
       {std::string(), std::string("short"), std::string("two words that are long enough"), std::string(5000, 'x')}) {
    std::ofstream(path) << text;
    EXPECT_THAT(AdminToken(path).check().message(), HasSubstr("16 to 4096 characters"));
  }
}

}  // namespace
}  // namespace mortise::extender
