#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/extender/handlers.h"
#include "tests/unit/extender/test_cluster.h"

namespace mortise::extender {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<std::string_view> kAll = {"big-a", "big-b", "small", "plain"};

BindingArgs to(const std::string& uid, const std::string& node) {
  return {"pod-" + uid, "default", uid, node};
}

TEST(Bind, TakesTheGpus) {
  TestCluster cluster;
  cluster.handlers().filter(ask("u1", 3, kAll));
  EXPECT_EQ(cluster.handlers().bind(to("u1", "big-a")), "");
  EXPECT_EQ(cluster.free_gpus("big-a"), 5);
  EXPECT_TRUE(cluster.cluster().check().ok());
}

TEST(Bind, AgainToTheSameNodeSucceedsAndTakesNothingMore) {
  TestCluster cluster;
  cluster.handlers().filter(ask("u1", 3, kAll));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(cluster.handlers().bind(to("u1", "big-a")), "");
  EXPECT_EQ(cluster.free_gpus("big-a"), 5);
}

TEST(Bind, AgainToAnotherNodeIsAnError) {
  TestCluster cluster;
  cluster.handlers().filter(ask("u1", 3, kAll));
  ASSERT_EQ(cluster.handlers().bind(to("u1", "big-a")), "");
  EXPECT_THAT(cluster.handlers().bind(to("u1", "big-b")), HasSubstr("already bound to node big-a"));
  EXPECT_EQ(cluster.free_gpus("big-b"), 8);
}

TEST(Bind, APodThatNeverAskedIsAnError) {
  TestCluster cluster;
  EXPECT_THAT(cluster.handlers().bind(to("u1", "big-a")), HasSubstr("not known"));
  EXPECT_THAT(cluster.handlers().bind({}), HasSubstr("no Node given"));
  EXPECT_EQ(cluster.free_gpus("big-a"), 8);
}

TEST(Bind, APodThatAskedTooLongAgoIsAnError) {
  TestCluster cluster;
  cluster.handlers().filter(ask("u1", 1, kAll));
  cluster.clock().advance(600 * kSecond);
  EXPECT_THAT(cluster.handlers().bind(to("u1", "big-a")), HasSubstr("not known"));
}

TEST(Bind, NameAndNamespaceMustBeThoseOfTheUid) {
  TestCluster cluster;
  cluster.handlers().filter(ask("u1", 1, kAll));
  EXPECT_THAT(cluster.handlers().bind({"other", "default", "u1", "big-a"}), HasSubstr("belongs to default/pod-u1"));
  EXPECT_THAT(cluster.handlers().bind({"pod-u1", "other", "u1", "big-a"}), HasSubstr("belongs to default/pod-u1"));
  EXPECT_EQ(cluster.free_gpus("big-a"), 8);
  EXPECT_EQ(cluster.handlers().bind({"pod-u1", "", "u1", "big-a"}), "");  // no namespace is the default one
  EXPECT_THAT(cluster.handlers().bind({"other", "default", "u1", "big-a"}), HasSubstr("belongs to default/pod-u1"));
}

TEST(Bind, ToANodeWhereItDoesNotFitIsAnErrorWithTheReason) {
  TestCluster cluster;
  cluster.handlers().filter(ask("u1", 4, kAll));
  EXPECT_THAT(cluster.handlers().bind(to("u1", "small")), HasSubstr("does not fit on node small: TooFewGpus"));
  EXPECT_THAT(cluster.handlers().bind(to("u1", "plain")), HasSubstr("NoGpu"));
  EXPECT_THAT(cluster.handlers().bind(to("u1", "nowhere")), HasSubstr("node nowhere is not known"));
  EXPECT_EQ(cluster.handlers().bind(to("u1", "big-b")), "");  // another node than planned, but it fits
}

TEST(Bind, WhenThePlannedDevicesAreGoneOthersOnTheNodeAreTaken) {
  TestCluster cluster;
  cluster.handlers().filter(ask("u1", 2, kAll));  // plans GPUs 0 and 1 of big-a
  cluster.handlers().filter(ask("u2", 2, kAll));  // so does this one
  EXPECT_EQ(cluster.handlers().bind(to("u2", "big-a")), "");
  EXPECT_EQ(cluster.handlers().bind(to("u1", "big-a")), "");
  EXPECT_EQ(cluster.free_gpus("big-a"), 4);
}

TEST(Bind, WhenTheNodeFilledUpSinceFilterItIsAnError) {
  TestCluster cluster;
  cluster.handlers().filter(ask("u1", 8, kAll));
  cluster.occupy("big-a", 1);
  EXPECT_THAT(cluster.handlers().bind(to("u1", "big-a")), HasSubstr("InsufficientGpu"));
  EXPECT_EQ(cluster.free_gpus("big-a"), 7);
  // The failure leaves the pod known: it asks again and is bound elsewhere.
  const FilterAnswer again = cluster.handlers().filter(ask("u1", 8, kAll));
  EXPECT_THAT(with_verdict(again.result, Verdict::kPassed), ElementsAre("big-b"));
  EXPECT_EQ(cluster.handlers().bind(to("u1", "big-b")), "");
}

TEST(Bind, APodWithoutGpusJustBinds) {
  TestCluster cluster;
  cluster.handlers().filter(ask("u1", 0, kAll));
  EXPECT_EQ(cluster.handlers().bind(to("u1", "plain")), "");
  EXPECT_EQ(cluster.handlers().bind(to("u1", "plain")), "");
  EXPECT_THAT(cluster.handlers().bind(to("u1", "small")), HasSubstr("already bound"));
  cluster.handlers().filter(ask("u2", 0, {"never-seen"}));
  EXPECT_EQ(cluster.handlers().bind(to("u2", "never-seen")), "");
}

TEST(Bind, APodOfTheClusterFileIsBoundFromTheStart) {
  TestCluster cluster;
  placement::PodRequest pod;
  pod.ns = "default";
  pod.name = "pod-u1";
  pod.uid = "u1";
  cluster.bookings().bound(pod, "big-b", {}, {});
  EXPECT_EQ(cluster.handlers().bind(to("u1", "big-b")), "");
  EXPECT_THAT(cluster.handlers().bind(to("u1", "big-a")), HasSubstr("already bound to node big-b"));
}

}  // namespace
}  // namespace mortise::extender
