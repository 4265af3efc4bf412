// What Bindings and ConfigMaps say of the plan of a gang.
#include "scheduler/extender/gang_slot.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/support/for_all.h"

namespace mortise::extender {
namespace {

placement::DeviceSet devices(int from, int to) {
  placement::DeviceSet set;
  for (int d = from; d < to; ++d) set.insert(d);
  return set;
}

std::string digits(int number, std::size_t width) {
  std::string text = std::to_string(number);
  return std::string(width - text.size(), '0') + text;
}

/// A plan of one member of eight GPUs on each node.
StoredPlan one_per_node(int members, const std::string& before, const std::string& after) {
  StoredPlan plan{1, {}};
  for (int i = 0; i < members; ++i) {
    plan.roles["worker"].push_back({uid_tag("uid-" + std::to_string(i)), before + digits(i, 4) + after, devices(0, 8)});
  }
  return plan;
}

GangSlot slot_of(const StoredPlan& plan) {
  GangSlot slot;
  slot.gang = gang_digest("mortise:default/train");
  slot.role = plan.roles.begin()->first;
  slot.plan = plan_digest("mortise:default/train", *plan_text(plan));
  return slot;
}

/// Devices 0 to 3 are bits 0 to 3: f. Devices 4 to 7: f0. None: 0. Device 127 is the highest bit of 32 digits. All
/// names begin with "gpu-1" and end with nothing: "", "0" and "2" are left.
TEST(GangSlot, APlanIsWrittenNodeByNode) {
  StoredPlan plan{7, {}};
  placement::DeviceSet last;
  last.insert(127);
  plan.roles["worker"] = {
      {"aaaaaa", "gpu-10", devices(0, 4)}, {"bbbbbb", "gpu-10", devices(4, 8)}, {"cccccc", "gpu-12", last}};
  plan.roles["master"] = {{"-_09Zz", "gpu-1", {}}};
  const std::string text = R"({"v":1,"rev":7,"at":"gpu-1*","roles":{"master":":0.-_09Zz",)"
                           R"("worker":"0:f.aaaaaa+f0.bbbbbb,2:80000000000000000000000000000000.cccccc"}})";
  EXPECT_EQ(*plan_text(plan), text);
  EXPECT_EQ(*parse_plan(text), plan);
}

/// Of "a-a" and "a-b-a" the beginning "a-" and the end "-a" would overlap in the shorter one: the end gives way.
TEST(GangSlot, WhatNamesHaveInCommonDoesNotOverlap) {
  StoredPlan plan{1, {}};
  plan.roles[""] = {{"aaaaaa", "a-a", devices(0, 1)}, {"bbbbbb", "a-b-a", devices(0, 1)}};
  EXPECT_EQ(*plan_text(plan), R"({"v":1,"rev":1,"at":"a-*a","roles":{"":":1.aaaaaa,b-:1.bbbbbb"}})");
  EXPECT_EQ(*parse_plan(*plan_text(plan)), plan);
}

/// printf 'mortise:default/train' | sha256sum
TEST(GangSlot, DigestsAreThoseOfSha256) {
  EXPECT_EQ(text_digest("abc", 64), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");  // FIPS 180-2
  EXPECT_EQ(text_digest("abc", 16), "ba7816bf8f01cfea");
  const StoredPlan plan = one_per_node(2, "n", "");
  EXPECT_NE(plan_digest("a", *plan_text(plan)), plan_digest("b", *plan_text(plan)));
}

TEST(GangSlot, SixteenMembersOnNodesWithLongNamesFitIntoAnAnnotation) {
  const StoredPlan plan = one_per_node(16, "ip-10-0-", ".eu-central-1.compute.internal");
  GangSlot slot = slot_of(plan);
  slot.index = 15;
  slot.all = plan;
  const auto text = slot_text(slot);
  ASSERT_TRUE(text.ok()) << text.message();
  EXPECT_LE(text->size(), 512U);
  const auto read = parse_slot(*text);
  ASSERT_TRUE(read.ok()) << read.message();
  EXPECT_EQ(read->all, plan);
  EXPECT_EQ(read->index, 15U);
  EXPECT_EQ(read->role, "worker");
  EXPECT_EQ(read->gang, slot.gang);
  EXPECT_EQ(read->plan, slot.plan);
}

TEST(GangSlot, WhatDoesNotFitIntoAnAnnotationIsRefused) {
  StoredPlan plan;
  for (int i = 0; i < 16; ++i) {  // names with nothing in common
    const std::string node = std::string(20, static_cast<char>('a' + i)) + digits(i * 7 % 10, 1);
    plan.roles["worker"].push_back({uid_tag(node), node, devices(0, 8)});
  }
  GangSlot slot = slot_of(plan);
  slot.all = plan;
  EXPECT_FALSE(slot_text(slot).ok());
  slot.all.reset();
  slot.ns = "team-a";
  EXPECT_TRUE(slot_text(slot).ok());
  EXPECT_EQ(parse_slot(*slot_text(slot))->ns, "team-a");
  EXPECT_FALSE(parse_slot(*slot_text(slot) + std::string(512, ' ')).ok());
}

/// A name of 63 characters, the longest label, for each of 4,096 nodes, of which only digits in the middle differ.
TEST(GangSlot, FourThousandMembersFitIntoAConfigMap) {
  const StoredPlan plan = one_per_node(4096, std::string(29, 'a'), std::string(30, 'b'));
  const auto text = plan_text(plan);
  ASSERT_TRUE(text.ok()) << text.message();
  EXPECT_LT(text->size(), 900U * 1024);
  EXPECT_EQ(*parse_plan(*text), plan);
  // Without anything in common 4,096 names of 200 characters and 11 more for each member are about 864 KB.
  StoredPlan apart;
  for (int i = 0; i < 4096; ++i) {
    const std::string head = i % 2 == 0 ? "x" : "y";
    apart.roles["worker"].push_back({"aaaaaa", head + std::string(195, 'n') + digits(i, 4), devices(0, 8)});
  }
  ASSERT_TRUE(plan_text(apart).ok());
  for (StoredSlot& slot : apart.roles["worker"]) slot.node += std::string(50, 'n') + slot.node.substr(196, 3);
  EXPECT_FALSE(plan_text(apart).ok());
}

TEST(GangSlot, OnlyWhatIsWrittenByUsIsRead) {
  const std::string good = R"({"v":1,"rev":1,"at":"n*","roles":{"":"1:1.aaaaaa,2:1.bbbbbb"}})";
  ASSERT_TRUE(parse_plan(good).ok());
  for (const char* bad : {
           "",
           "[]",
           "{",
           R"({"v":2,"rev":1,"at":"n*","roles":{"":"1:1.aaaaaa,2:1.bbbbbb"}})",
           R"({"v":1,"rev":-1,"at":"n*","roles":{"":"1:1.aaaaaa"}})",
           R"({"v":1,"rev":1,"at":"n","roles":{"":"1:1.aaaaaa"}})",
           R"({"v":1,"rev":1,"at":"n*","roles":{}})",
           R"({"v":1,"rev":1,"at":"n*","roles":{"":""}})",
           R"({"v":1,"rev":1,"at":"n*","roles":{"":"1:1.aaaaa,2:1.bbbbbb"}})",    // a short tag
           R"({"v":1,"rev":1,"at":"n*","roles":{"":"1:g.aaaaaa,2:1.bbbbbb"}})",   // no mask
           R"({"v":1,"rev":1,"at":"n*","roles":{"":"1:01.aaaaaa,2:1.bbbbbb"}})",  // a mask written otherwise
           R"({"v":1,"rev":1,"at":"n*","roles":{"":"1:1.aaaaaa,1:2.bbbbbb"}})",   // one node twice
           R"({"v":1,"rev":1,"at":"*","roles":{"":"n1:1.aaaaaa,n2:1.bbbbbb"}})",  // what is in common not taken out
           R"({"v":1,"rev":1,"at":"N*","roles":{"":"1:1.aaaaaa,2:1.bbbbbb"}})",   // no name of a node
           R"({"v":1,"rev":1,"at":"n*","roles":{"":"1:1.aaaaaa,2:1.bbbbbb"},"more":1})",
           R"({"v":1,"rev":1,"at":"n*","roles":{"":7}})",
       }) {
    EXPECT_FALSE(parse_plan(bad).ok()) << bad;
  }
  EXPECT_FALSE(parse_plan(" " + good).ok());
  const std::string head =
      R"({"gang":"0123456789abcdef","role":"","index":0,"plan":"0123456789abcdef0123456789abcdef")";
  EXPECT_TRUE(parse_slot(head + R"(,"in":"default"})").ok());
  EXPECT_TRUE(parse_slot(head + R"(,"all":)" + good + "}").ok());
  EXPECT_FALSE(parse_slot(head + "}").ok());
  EXPECT_FALSE(parse_slot(head + R"(,"all":7})").ok());
  EXPECT_FALSE(parse_slot(R"({"gang":"0123","role":"","index":0,"plan":"0123","in":"default"})").ok());
}

TEST(GangSlot, WhatIsWrittenIsReadAgain) {
  test::for_all(300, [] {
    StoredPlan plan{*rc::gen::inRange<std::uint64_t>(0, 1'000'000), {}};
    const auto roles = *rc::gen::inRange(1, 4);
    for (int r = 0; r < roles; ++r) {
      const auto name = *rc::gen::container<std::string>(rc::gen::inRange<char>(' ', '\x7f'));
      auto& slots = plan.roles[name];
      const auto members = *rc::gen::inRange(1, 30);
      for (int m = 0; m < members; ++m) {
        placement::DeviceSet set;
        for (const int d : *rc::gen::container<std::set<int>>(rc::gen::inRange(0, 128))) set.insert(d);
        const auto node = *rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab1-."))));
        slots.push_back({uid_tag(*rc::gen::arbitrary<std::string>()), node, set});
      }
    }
    const auto text = plan_text(plan);
    RC_ASSERT(text.ok());
    const auto read = parse_plan(*text);
    RC_ASSERT(read.ok());
    RC_ASSERT(*read == plan);
  });
}

}  // namespace
}  // namespace mortise::extender
