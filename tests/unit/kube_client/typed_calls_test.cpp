// The calls that know what they ask for: what goes over the wire, and what each answer means.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "scheduler/kube/client/bind_pod.h"
#include "scheduler/kube/client/config_map.h"
#include "scheduler/kube/client/lease.h"
#include "scheduler/kube/client/patch_annotations.h"
#include "scheduler/kube/client/read_pod.h"
#include "scheduler/kube/client/resource_path.h"
#include "tests/unit/kube_client/test_client.h"

namespace mortise::kube {
namespace {

using nlohmann::json;
using test::FakeApiServer;
using test::FakeExchange;
using test::FakeRequest;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

/// A server with one answer, which it gives to everything.
class TypedCalls : public testing::Test {
 protected:
  void answer(int status, const std::string& body) {
    status_ = status;
    body_ = body;
  }
  std::string asked() const { return server_.asked().back(); }

  FakeRequest last_;
  int status_ = 200;
  std::string body_ = "{}";
  FakeApiServer server_{[this](const FakeRequest& request, FakeExchange& exchange) {
    last_ = request;
    if (status_ == 0) return exchange.drop();
    exchange.respond(status_, body_);
  }};
  std::unique_ptr<ApiClient> client_ = test::make_client(server_);
};

constexpr const char* kLease =
    R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease",
        "metadata":{"namespace":"ml","name":"mortise","uid":"u1","resourceVersion":"7","labels":{"owner":"helm"}},
        "spec":{"holderIdentity":"a","leaseDurationSeconds":15,"acquireTime":"2026-01-02T03:04:05.000000Z",
                "renewTime":"2026-01-02T03:05:05.000000Z","leaseTransitions":2,"strategy":"OldestEmulationVersion"}})";

TEST_F(TypedCalls, BindingCarriesUidNodeAndAnnotations) {
  answer(201, R"({"kind":"Status","status":"Success"})");
  const Done bound = bind_pod(*client_, {"ml", "train-0", "u-1", "n1", {{"mortise.dev/gang-slot", "x"}}});
  EXPECT_TRUE(bound.done()) << bound.detail;
  EXPECT_EQ(asked(), "POST /api/v1/namespaces/ml/pods/train-0/binding");
  EXPECT_EQ(json::parse(last_.body), json::parse(R"({"apiVersion":"v1","kind":"Binding",
    "metadata":{"namespace":"ml","name":"train-0","uid":"u-1","annotations":{"mortise.dev/gang-slot":"x"}},
    "target":{"apiVersion":"v1","kind":"Node","name":"n1"}})"));
}

TEST_F(TypedCalls, EveryAnswerToAWriteHasOneMeaning) {
  const std::pair<int, Outcome> cases[] = {
      {200, Outcome::kDone},    {201, Outcome::kDone},     {400, Outcome::kRefused}, {401, Outcome::kRefused},
      {403, Outcome::kRefused}, {404, Outcome::kNotFound}, {408, Outcome::kUnknown}, {409, Outcome::kConflict},
      {422, Outcome::kRefused}, {429, Outcome::kLater},    {500, Outcome::kUnknown}, {503, Outcome::kUnknown},
      {504, Outcome::kUnknown}, {301, Outcome::kRefused},  {0, Outcome::kUnknown},
  };
  for (const auto& [status, outcome] : cases) {
    answer(status, R"({"reason":"R","message":"M"})");
    const Done bound = bind_pod(*client_, {"ml", "p", "u", "n", {}});
    EXPECT_EQ(bound.outcome, outcome) << status << ": " << to_string(bound.outcome);
    EXPECT_EQ(bound.detail.empty(), outcome == Outcome::kDone) << status;
  }
}

TEST_F(TypedCalls, WhereNobodyListensItWasNotSent) {
  ApiConfig config;
  config.server = {false, "127.0.0.1", test::closed_port(), ""};
  EXPECT_EQ(bind_pod(*test::make_client(config), {"ml", "p", "u", "n", {}}).outcome, Outcome::kNotSent);
}

TEST_F(TypedCalls, PodIsReadByName) {
  answer(200, R"({"metadata":{"namespace":"ml","name":"p","uid":"u"},"spec":{"nodeName":"n1"}})");
  const Answer<Pod> pod = read_pod(*client_, "ml", "p");
  ASSERT_TRUE(pod.done()) << pod.detail;
  EXPECT_EQ(asked(), "GET /api/v1/namespaces/ml/pods/p");
  EXPECT_EQ(pod.value->node_name, "n1");
  answer(404, R"({"reason":"NotFound","message":"pods \"p\" not found"})");
  EXPECT_EQ(read_pod(*client_, "ml", "p").outcome, Outcome::kNotFound);
}

TEST_F(TypedCalls, AnAnswerThatCannotBeReadLeavesTheOutcomeOpen) {
  answer(200, "<html>");
  const Answer<Pod> pod = read_pod(*client_, "ml", "p");
  EXPECT_EQ(pod.outcome, Outcome::kUnknown);
  EXPECT_THAT(pod.detail, HasSubstr("not valid JSON"));
  EXPECT_EQ(pod.value, std::nullopt);
}

TEST_F(TypedCalls, AnnotationsAreSetAndTakenAway) {
  answer(200, R"({"metadata":{"name":"n1","uid":"u","resourceVersion":"9"}})");
  const Answer<ObjectName> patched = patch_annotations(
      *client_, {resource_path("/api/v1", "", "nodes", "n1"), "u", "8", {{"a", "1"}, {"b", std::nullopt}}});
  ASSERT_TRUE(patched.done()) << patched.detail;
  EXPECT_EQ(patched.value->resource_version, "9");
  EXPECT_EQ(asked(), "PATCH /api/v1/nodes/n1");
  EXPECT_EQ(last_.headers["content-type"], "application/merge-patch+json");
  EXPECT_EQ(json::parse(last_.body),
            json::parse(R"({"metadata":{"uid":"u","resourceVersion":"8","annotations":{"a":"1","b":null}}})"));
}

TEST_F(TypedCalls, LeaseIsRead) {
  answer(200, kLease);
  const Answer<Lease> lease = read_lease(*client_, "ml", "mortise");
  ASSERT_TRUE(lease.done()) << lease.detail;
  EXPECT_EQ(asked(), "GET /apis/coordination.k8s.io/v1/namespaces/ml/leases/mortise");
  EXPECT_EQ(lease.value->holder, "a");
  EXPECT_EQ(lease.value->duration_seconds, 15);
  EXPECT_EQ(lease.value->renew_time, "2026-01-02T03:05:05.000000Z");
  EXPECT_EQ(lease.value->transitions, 2);
  EXPECT_EQ(lease.value->resource_version, "7");
}

TEST_F(TypedCalls, LeaseIsCreated) {
  answer(201, kLease);
  Lease lease;
  lease.ns = "ml";
  lease.name = "mortise";
  lease.holder = "a";
  lease.duration_seconds = 15;
  lease.renew_time = "2026-01-02T03:04:05.000000Z";
  EXPECT_TRUE(create_lease(*client_, lease).done());
  EXPECT_EQ(asked(), "POST /apis/coordination.k8s.io/v1/namespaces/ml/leases");
  EXPECT_EQ(json::parse(last_.body), json::parse(R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease",
    "metadata":{"namespace":"ml","name":"mortise"},
    "spec":{"holderIdentity":"a","leaseDurationSeconds":15,"renewTime":"2026-01-02T03:04:05.000000Z","leaseTransitions":0}})"));
}

TEST_F(TypedCalls, LeaseUpdateKeepsWhatIsNotOurs) {
  answer(200, kLease);
  Answer<Lease> lease = read_lease(*client_, "ml", "mortise");
  ASSERT_TRUE(lease.done());
  lease.value->holder = "";
  lease.value->renew_time = "2026-01-02T03:06:00.000000Z";
  answer(409, R"({"reason":"Conflict","message":"changed"})");
  EXPECT_EQ(update_lease(*client_, *lease.value).outcome, Outcome::kConflict);
  EXPECT_EQ(asked(), "PUT /apis/coordination.k8s.io/v1/namespaces/ml/leases/mortise");
  json expected = json::parse(kLease);
  expected["spec"].erase("holderIdentity");
  expected["spec"]["renewTime"] = "2026-01-02T03:06:00.000000Z";
  EXPECT_EQ(json::parse(last_.body), expected);
}

TEST_F(TypedCalls, AnnotationsOfALeaseAreReadAndWritten) {
  json stored = json::parse(kLease);
  stored["metadata"]["annotations"] = {{"kept", "x"}, {"gone", "y"}};
  answer(200, stored.dump().c_str());
  Answer<Lease> lease = read_lease(*client_, "ml", "mortise");
  ASSERT_TRUE(lease.done()) << lease.detail;
  EXPECT_THAT(lease.value->annotations, ElementsAre(Pair("gone", "y"), Pair("kept", "x")));
  lease.value->annotations.erase("gone");
  lease.value->annotations["new"] = "z";
  EXPECT_TRUE(update_lease(*client_, *lease.value).done());
  EXPECT_EQ(json::parse(last_.body)["metadata"]["annotations"], json::parse(R"({"kept":"x","new":"z"})"));
}

TEST_F(TypedCalls, AnUpdateWithoutAVersionIsNotSent) {
  Lease lease;
  lease.ns = "ml";
  lease.name = "mortise";
  EXPECT_EQ(update_lease(*client_, lease).outcome, Outcome::kRefused);
  ConfigMap map;
  map.ns = "ml";
  map.name = "m";
  EXPECT_EQ(update_config_map(*client_, map).outcome, Outcome::kRefused);
  EXPECT_TRUE(server_.asked().empty());
}

TEST_F(TypedCalls, ConfigMapIsCreatedWithItsOwner) {
  answer(201, R"({"metadata":{"namespace":"ml","name":"plan","uid":"u","resourceVersion":"3"},"data":{"plan":"x"}})");
  ConfigMap map;
  map.ns = "ml";
  map.name = "plan";
  map.labels = {{"mortise.dev/gang", "g"}};
  map.owners = {{"batch/v1", "Job", "train", "u-9", true}};
  map.data = {{"plan", "x"}};
  const Answer<ConfigMap> created = create_config_map(*client_, map);
  ASSERT_TRUE(created.done()) << created.detail;
  EXPECT_EQ(created.value->resource_version, "3");
  EXPECT_EQ(asked(), "POST /api/v1/namespaces/ml/configmaps");
  EXPECT_EQ(json::parse(last_.body), json::parse(R"({"apiVersion":"v1","kind":"ConfigMap",
    "metadata":{"namespace":"ml","name":"plan","labels":{"mortise.dev/gang":"g"},"annotations":{},
                "ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"train","uid":"u-9","controller":true}]},
    "data":{"plan":"x"}})"));
}

TEST_F(TypedCalls, ConfigMapIsReadAndUpdatedOverTheStateThatWasRead) {
  const char* stored = R"({"apiVersion":"v1","kind":"ConfigMap","immutable":false,"binaryData":{"b":"AA=="},
    "metadata":{"namespace":"ml","name":"plan","uid":"u","resourceVersion":"3","labels":{},"annotations":{},
                "ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u","blockOwnerDeletion":true}]},
    "data":{"plan":"x","old":"y"}})";
  answer(200, stored);
  Answer<ConfigMap> map = read_config_map(*client_, "ml", "plan");
  ASSERT_TRUE(map.done()) << map.detail;
  EXPECT_THAT(map.value->data, ElementsAre(Pair("old", "y"), Pair("plan", "x")));
  ASSERT_EQ(map.value->owners.size(), 1U);
  EXPECT_EQ(map.value->owners[0].kind, "Pod");
  map.value->data = {{"plan", "z"}};
  EXPECT_TRUE(update_config_map(*client_, *map.value).done());
  EXPECT_EQ(asked(), "PUT /api/v1/namespaces/ml/configmaps/plan");
  json expected = json::parse(stored);
  expected["data"] = {{"plan", "z"}};
  EXPECT_EQ(json::parse(last_.body), expected);
}

TEST_F(TypedCalls, BytesThatAreNotTextDoNotStopARequest) {
  answer(201, "{}");
  EXPECT_TRUE(bind_pod(*client_, {"ml", "p", "u", "n", {{"a", "\xff"}}}).done());
  EXPECT_EQ(json::parse(last_.body)["metadata"]["annotations"]["a"], "\uFFFD");
}

// 1700000000 s after the epoch is 2023-11-14 22:13:20 UTC.
TEST(MicroTime, IsWrittenAsKubernetesDoes) {
  using namespace std::chrono;
  EXPECT_EQ(micro_time(system_clock::time_point(seconds(1700000000) + microseconds(42))),
            "2023-11-14T22:13:20.000042Z");
  EXPECT_EQ(micro_time(system_clock::time_point(nanoseconds(1))), "1970-01-01T00:00:00.000000Z");
}

}  // namespace
}  // namespace mortise::kube
