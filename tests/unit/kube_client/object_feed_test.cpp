#include "scheduler/kube/client/object_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "scheduler/kube/objects/decode.h"

namespace mortise::kube {
namespace {

using nlohmann::json;
using testing::ElementsAre;

class PodFeed final : public TypedFeed<Pod> {
 public:
  PodFeed() : TypedFeed(decode_pod) {}

  void on_list_started() override { told.push_back("list"); }
  void on_replace(std::vector<Pod> objects, const std::string& version) override {
    std::string names;
    for (const Pod& pod : objects) names += " " + pod.name;
    told.push_back("replace" + names + " of " + version);
  }
  void on_upsert(Pod object) override { told.push_back("upsert " + object.name); }
  void on_delete(const ObjectName& name) override { told.push_back("delete " + name.name); }
  void on_bad_object(const ObjectName& name, const std::string& why) override {
    told.push_back("bad " + name.name + ": " + why);
  }
  void on_progress(const std::string& version) override { told.push_back("at " + version); }

  std::vector<std::string> told;
};

ObjectName name_of(const char* name) {
  return {"ns", name, "u", "1"};
}

json pod(const char* name) {
  return {{"metadata", {{"name", name}}}};
}

const json kBad = {{"spec", {{"priority", "high"}}}};

TEST(TypedFeed, AListIsToldOnceItIsComplete) {
  PodFeed feed;
  feed.list_started();
  feed.listed(name_of("a"), pod("a"));
  feed.list_started();  // the first was given up
  feed.listed(name_of("b"), pod("b"));
  feed.listed(name_of("c"), pod("c"));
  EXPECT_THAT(feed.told, ElementsAre("list", "list"));
  feed.list_completed("7");
  EXPECT_THAT(feed.told, ElementsAre("list", "list", "replace b c of 7", "at 7"));
}

TEST(TypedFeed, AnObjectThatCannotBeDecodedIsToldByNameAndCostsNoOther) {
  PodFeed feed;
  feed.list_started();
  feed.listed(name_of("a"), kBad);
  feed.listed(name_of("b"), pod("b"));
  feed.list_completed("7");
  feed.changed(name_of("b"), kBad);
  feed.deleted(name_of("b"), kBad);
  const std::string why = "spec.priority must be a whole number of at most 32 bits, not of type string";
  EXPECT_THAT(feed.told, ElementsAre("list", "bad a: " + why, "replace b of 7", "at 7", "bad b: " + why, "delete b"));
}

TEST(TypedFeed, EventsAreTold) {
  PodFeed feed;
  feed.changed(name_of("a"), pod("a"));
  feed.progressed("8");
  feed.deleted(name_of("a"), pod("a"));
  EXPECT_THAT(feed.told, ElementsAre("upsert a", "at 8", "delete a"));
}

}  // namespace
}  // namespace mortise::kube
