#include "scheduler/kube/client/watch_event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "scheduler/kube/client/backoff.h"
#include "scheduler/kube/client/resource_path.h"

namespace mortise::kube {
namespace {

using testing::ElementsAre;

std::vector<std::string> lines_of(const std::vector<std::string>& pieces) {
  std::vector<std::string> lines;
  LineSplitter splitter(8);
  for (const std::string& piece : pieces) {
    splitter.feed(piece, [&](std::string_view line) {
      lines.emplace_back(line);
      return true;
    });
  }
  if (splitter.pending()) lines.push_back("pending");
  if (splitter.too_long()) lines.push_back("too long");
  return lines;
}

TEST(LineSplitter, LinesComeOutHoweverTheyWereCut) {
  EXPECT_THAT(lines_of({"a\nbc\nd\n"}), ElementsAre("a", "bc", "d"));
  EXPECT_THAT(lines_of({"a", "\n", "b", "c\nd", "\n"}), ElementsAre("a", "bc", "d"));
  EXPECT_THAT(lines_of({"\n\na\n\n"}), ElementsAre("a"));
  EXPECT_THAT(lines_of({"a\nb"}), ElementsAre("a", "pending"));
}

TEST(LineSplitter, ALineOfTheLimitPassesAndALongerOneDoesNot) {
  EXPECT_THAT(lines_of({"12345678\n"}), ElementsAre("12345678"));
  EXPECT_THAT(lines_of({"1234", "5678", "\n"}), ElementsAre("12345678"));
  EXPECT_THAT(lines_of({"123456789\n"}), ElementsAre("too long"));
  EXPECT_THAT(lines_of({"1234", "56789"}), ElementsAre("pending", "too long"));
}

TEST(WatchEvent, AddedCarriesNameAndObject) {
  const auto event = decode_watch_event(
      R"({"type":"ADDED","object":{"metadata":{"namespace":"ml","name":"p","uid":"u","resourceVersion":"12"},"x":1}})");
  ASSERT_TRUE(event.ok()) << event.message();
  EXPECT_EQ(event->type, WatchEventType::kAdded);
  EXPECT_EQ(event->name.key(), "ml/p");
  EXPECT_EQ(event->name.uid, "u");
  EXPECT_EQ(event->name.resource_version, "12");
  EXPECT_EQ((*event->object)["x"], 1);
}

TEST(WatchEvent, ErrorCarriesTheStatus) {
  const auto event = decode_watch_event(
      R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}})");
  ASSERT_TRUE(event.ok()) << event.message();
  EXPECT_EQ(event->error_code, 410);
  EXPECT_EQ(event->error_text, "410 Expired: too old");
}

TEST(WatchEvent, ClusterWideObjectsHaveNoNamespace) {
  const auto event =
      decode_watch_event(R"({"type":"DELETED","object":{"metadata":{"name":"n1","uid":"u","resourceVersion":"12"}}})");
  ASSERT_TRUE(event.ok()) << event.message();
  EXPECT_EQ(event->name.key(), "/n1");
}

TEST(ResourceVersion, OlderIsByNumberNotByText) {
  EXPECT_TRUE(is_older_version("9", "10"));
  EXPECT_FALSE(is_older_version("10", "9"));
  EXPECT_FALSE(is_older_version("10", "10"));
  EXPECT_TRUE(is_older_version("18446744073709551615", "18446744073709551616"));
  EXPECT_FALSE(is_older_version("0010", "10"));
  // What is no number is not compared.
  EXPECT_FALSE(is_older_version("abc", "abd"));
  EXPECT_FALSE(is_older_version("", "1"));
}

TEST(ResourcePath, EveryPartIsEncoded) {
  EXPECT_EQ(resource_path("/api/v1", "", "nodes"), "/api/v1/nodes");
  EXPECT_EQ(resource_path("/api/v1", "ml", "pods", "p", "binding"), "/api/v1/namespaces/ml/pods/p/binding");
  EXPECT_EQ(resource_path("/api/v1", "a/b", "pods", "c?d"), "/api/v1/namespaces/a%2Fb/pods/c%3Fd");
  EXPECT_EQ(with_query("/x", {{"a", "1 2"}, {"b", ""}, {"c", "k!=v,\xC3\xA4"}}), "/x?a=1%202&c=k%21%3Dv%2C%C3%A4");
}

TEST(Backoff, DoublesUpToTheLongestAndStartsAnewAfterReset) {
  Rng rng(1);
  Backoff backoff(100, 350);
  for (const Nanoseconds whole : {100, 200, 350, 350}) {
    const Nanoseconds wait = backoff.next(rng);
    EXPECT_GE(wait, whole / 2);
    EXPECT_LE(wait, whole);
  }
  backoff.reset();
  EXPECT_LE(backoff.next(rng), 100);
}

}  // namespace
}  // namespace mortise::kube
