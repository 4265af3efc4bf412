#include "scheduler/extender/asked_pods.h"

#include <gtest/gtest.h>

namespace mortise::extender {
namespace {

TEST(AskedPod, ANodeIsSetAsideForAMinuteThenTwiceAsLongUpToTenMinutes) {
  AskedPod pod;
  const NodeId node{3};
  Nanoseconds now = 0;
  for (const Nanoseconds seconds : {60, 120, 240, 480, 600, 600}) {
    EXPECT_FALSE(pod.aside_until(node, now));
    pod.set_aside(node, now);
    EXPECT_EQ(pod.aside_until(node, now), now + seconds * kSecond);
    EXPECT_EQ(pod.aside_until(node, now + seconds * kSecond - 1), now + seconds * kSecond);
    now += seconds * kSecond;
  }
}

TEST(AskedPod, NodesAreSetAsideEachForItself) {
  AskedPod pod;
  pod.set_aside(NodeId{1}, 0);
  pod.set_aside(NodeId{1}, 0);
  pod.set_aside(NodeId{2}, 0);
  EXPECT_EQ(pod.aside_until(NodeId{1}, 0), 120 * kSecond);
  EXPECT_EQ(pod.aside_until(NodeId{2}, 0), 60 * kSecond);
  EXPECT_FALSE(pod.aside_until(NodeId{3}, 0));
}

TEST(AskedPods, APodIsForgottenTenMinutesAfterItsLastAsk) {
  AskedPods pods;
  pods.touch("u", 0);
  pods.touch("u", 300 * kSecond);
  EXPECT_NE(pods.find("u", 899 * kSecond), nullptr);
  EXPECT_EQ(pods.find("u", 900 * kSecond), nullptr);
  EXPECT_EQ(pods.size(), 0U);
}

TEST(AskedPods, BeyondTheCapTheOneThatAskedLeastRecentlyGoes) {
  AskedPods pods(2);
  pods.touch("a", 1);
  pods.touch("b", 2);
  pods.touch("a", 3);
  pods.touch("c", 4);
  EXPECT_NE(pods.find("a", 5), nullptr);
  EXPECT_EQ(pods.find("b", 5), nullptr);
  EXPECT_NE(pods.find("c", 5), nullptr);
}

TEST(AskedPods, AnErasedPodIsGone) {
  AskedPods pods;
  pods.touch("a", 0).asks = 2;
  EXPECT_EQ(pods.find("a", 0)->asks, 2);
  pods.erase("a");
  pods.erase("never there");
  EXPECT_EQ(pods.find("a", 0), nullptr);
}

}  // namespace
}  // namespace mortise::extender
