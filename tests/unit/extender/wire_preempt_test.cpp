#include "scheduler/extender/wire_preempt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mortise::extender {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Reads and keeps the bytes that the views point to.
struct Read {
  explicit Read(std::string text) : body(std::move(text)), args(read_preemption_args(body)) {
    EXPECT_TRUE(args.ok()) << args.message();
  }
  std::vector<std::string> uids(std::size_t candidate) const {
    std::vector<std::string> all;
    for (const ProposedVictim& victim : args->candidates.at(candidate).victims) all.emplace_back(victim.uid);
    return all;
  }
  std::string body;
  Result<PreemptionArgs> args;
};

std::string refusal(std::string body) {
  const auto args = read_preemption_args(body);
  return args.ok() ? "accepted" : args.message();
}

TEST(PreemptionArgs, UidsOnly) {
  const Read read(R"({"Pod":{"metadata":{"name":"p"}},"NodeNameToVictims":null,"NodeNameToMetaVictims":)"
                  R"({"n1":{"Pods":[{"UID":"u1"},{"UID":"u2"}],"NumPDBViolations":1},"n2":{"Pods":[{"UID":"u3"}]}}})");
  EXPECT_EQ(read.args->pod, R"({"metadata":{"name":"p"}})");
  ASSERT_EQ(read.args->candidates.size(), 2U);
  EXPECT_EQ(read.args->candidates[0].node, "n1");
  EXPECT_EQ(read.args->candidates[0].pdb_violations, 1);
  EXPECT_THAT(read.uids(0), ElementsAre("u1", "u2"));
  EXPECT_EQ(read.args->candidates[0].victims[0].priority, std::nullopt);
  EXPECT_EQ(read.args->candidates[1].node, "n2");
  EXPECT_EQ(read.args->candidates[1].pdb_violations, 0);
  EXPECT_THAT(read.uids(1), ElementsAre("u3"));
}

TEST(PreemptionArgs, WholePods) {
  const Read read(
      R"({"Pod":{},"NodeNameToMetaVictims":null,"NodeNameToVictims":{"n1":{"Pods":[)"
      R"( {"metadata":{"name":"a","uid":"u1"},"spec":{"priority":5}} ,{"spec":{}}],"NumPDBViolations":2}}})");
  ASSERT_EQ(read.args->candidates.size(), 1U);
  EXPECT_THAT(read.uids(0), ElementsAre("u1", ""));
  EXPECT_EQ(read.args->candidates[0].victims[0].priority, 5);
  EXPECT_EQ(read.args->candidates[0].victims[1].priority, 0);
  EXPECT_EQ(read.args->candidates[0].pdb_violations, 2);
}

TEST(PreemptionArgs, KeysInAnyCase) {
  const Read read(R"({"pod":{},"nodenametometavictims":{"N1":{"pods":[{"uid":"U1"}],"numpdbviolations":3}}})");
  ASSERT_EQ(read.args->candidates.size(), 1U);
  EXPECT_EQ(read.args->candidates[0].node, "N1");  // a name, not a key of ours
  EXPECT_THAT(read.uids(0), ElementsAre("U1"));
  EXPECT_EQ(read.args->candidates[0].pdb_violations, 3);
}

TEST(PreemptionArgs, EveryFormOfNoVictims) {
  const Read read(R"({"Pod":{},"NodeNameToMetaVictims":{"a":{"Pods":[]},"b":{"Pods":null,"NumPDBViolations":null},)"
                  R"("c":{},"d":null,"e":{"Pods":[null,{},{"UID":null}]}}})");
  ASSERT_EQ(read.args->candidates.size(), 5U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_THAT(read.uids(i), IsEmpty());
  EXPECT_THAT(read.uids(4), ElementsAre("", "", ""));
}

TEST(PreemptionArgs, NothingGiven) {
  for (const char* body : {"null", "{}", R"({"Pod":null,"NodeNameToVictims":null,"NodeNameToMetaVictims":null})"}) {
    const Read read(body);
    EXPECT_EQ(read.args->pod, "");
    EXPECT_THAT(read.args->candidates, IsEmpty());
  }
}

// In the protocol's own test document both maps are filled; kube-scheduler fills one.
TEST(PreemptionArgs, TheUidsCountWhereBothMapsAreFilled) {
  const Read read(R"({"NodeNameToVictims":{"foo":{"Pods":[{"metadata":{"name":"p"}}],"NumPDBViolations":1}},)"
                  R"("NodeNameToMetaVictims":{"foo":{"Pods":[{"UID":"myuid"}],"NumPDBViolations":1}}})");
  ASSERT_EQ(read.args->candidates.size(), 1U);
  EXPECT_THAT(read.uids(0), ElementsAre("myuid"));
}

TEST(PreemptionArgs, TheLastOfTwoEqualKeysWins) {
  const Read read(R"({"NodeNameToMetaVictims":{"gone":{}},"NodeNameToMetaVictims":{"a":{"Pods":[{"UID":"x"}],)"
                  R"("NumPDBViolations":4},"b":{},"a":{"Pods":[{"UID":"y"}],"Pods":[{"UID":"z","UID":"w"}]}}})");
  ASSERT_EQ(read.args->candidates.size(), 2U);
  EXPECT_EQ(read.args->candidates[0].node, "a");
  EXPECT_THAT(read.uids(0), ElementsAre("w"));
  EXPECT_EQ(read.args->candidates[0].pdb_violations, 0);
}

TEST(PreemptionArgs, EscapesInNamesAndUids) {
  const Read read(R"({"NodeNameToMetaVictims":{"n\u00f6de":{"Pods":[{"U\u0049D":"u\"1"}]},"m":{}}})");
  ASSERT_EQ(read.args->candidates.size(), 2U);
  EXPECT_EQ(read.args->candidates[0].node,
            "n\xC3\xB6"
            "de");
  EXPECT_THAT(read.uids(0), ElementsAre("u\"1"));
  EXPECT_EQ(read.args->candidates[1].node, "m");
}

TEST(PreemptionArgs, WhatFollowsTheFirstValueIsIgnored) {
  const Read read(R"({"NodeNameToMetaVictims":{"a":{"Pods":[{"UID":"x"}]}}} {"NodeNameToMetaVictims":{"b":{}}} trash)");
  ASSERT_EQ(read.args->candidates.size(), 1U);
  EXPECT_THAT(read.uids(0), ElementsAre("x"));
}

TEST(PreemptionArgs, WrongTypesRefuseTheCall) {
  EXPECT_EQ(refusal(""), "request has no body");
  EXPECT_EQ(refusal("[]"), "request must be a JSON object");
  EXPECT_THAT(refusal(R"({"Pod":1})"), HasSubstr("Pod must be an object"));
  EXPECT_THAT(refusal(R"({"NodeNameToVictims":[]})"),
              HasSubstr("NodeNameToVictims must be an object with an entry per node"));
  EXPECT_THAT(refusal(R"({"NodeNameToMetaVictims":{"a":[]}})"),
              HasSubstr("each entry of NodeNameToMetaVictims must be an object with Pods and NumPDBViolations"));
  EXPECT_THAT(refusal(R"({"NodeNameToMetaVictims":{"a":{"Pods":{}}}})"),
              HasSubstr("Pods in NodeNameToMetaVictims must be an array"));
  EXPECT_THAT(refusal(R"({"NodeNameToMetaVictims":{"a":{"Pods":["u1"]}}})"),
              HasSubstr("each of Pods in NodeNameToMetaVictims must be an object"));
  EXPECT_THAT(refusal(R"({"NodeNameToMetaVictims":{"a":{"Pods":[{"UID":1}]}}})"),
              HasSubstr("the UID of a victim must be a string"));
  EXPECT_THAT(refusal(R"({"NodeNameToVictims":{"a":{"Pods":[{"metadata":7}]}}})"),
              HasSubstr("metadata of a victim must be an object"));
  EXPECT_THAT(refusal(R"({"NodeNameToVictims":{"a":{"Pods":[{"spec":{"priority":1.5}}]}}})"),
              HasSubstr("the priority of a victim must be a whole number"));
  for (const char* number : {"1.0", "1e0", "\"1\"", "true", "9223372036854775808", "01", "{}"}) {
    EXPECT_NE(refusal(R"({"NodeNameToMetaVictims":{"a":{"NumPDBViolations":)" + std::string(number) + "}}}"),
              "accepted")
        << number;
  }
}

TEST(PreemptionArgs, CutShortAnywhereIsRefused) {
  const std::string whole = R"({"Pod":{"a":[1]},"NodeNameToVictims":{"n":{"Pods":[{"metadata":{"uid":"u"}}],)"
                            R"("NumPDBViolations":1}}})";
  EXPECT_EQ(refusal(whole), "accepted");
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_NE(refusal(whole.substr(0, size)), "accepted") << size;
}

TEST(PreemptionResult, IsWrittenAsGoReadsIt) {
  EXPECT_EQ(write_preemption_result({}), R"({"NodeNameToMetaVictims":{}})");
  EXPECT_EQ(write_preemption_result({{"n1", {"u1", "u\"2"}, 1}, {"n\n2", {"u3"}, 0}}),
            R"({"NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"u1"},{"UID":"u\"2"}],"NumPDBViolations":1},)"
            R"("n\n2":{"Pods":[{"UID":"u3"}],"NumPDBViolations":0}}})");
}

}  // namespace
}  // namespace mortise::extender
