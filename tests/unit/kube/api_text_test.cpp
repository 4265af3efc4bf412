// What is read of API objects is what the JSON parser gives; what nobody reads is left out, and nothing else.
#include "scheduler/kube/objects/api_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace mortise::kube {
namespace {

using nlohmann::json;

TEST(ApiText, ValuesOfEveryKindAreAsTheJsonParserReadsThem) {
  for (const char* text : {
           R"({"a":[1,-1,0,18446744073709551615,-9223372036854775808,1.5,1e3,-0.0,true,false,null,"x",{},[]]})",
           R"({"quote \" slash \\ tab \t":"\u00e9 \ud83d\ude00 é"})",
           R"({"twice":1,"twice":{"the":"last"}})",
           R"({"larger than 64 bits":18446744073709551616})",
           R"( [ ] )",
           R"("text")",
           "17",
           "null",
       }) {
    const auto read = parse_api_text(text, "");
    ASSERT_TRUE(read.ok()) << text << ": " << read.message();
    const json expected = json::parse(text);
    EXPECT_EQ(*read, expected) << text;
    EXPECT_EQ(read->dump(), expected.dump()) << text;  // of equal numbers of other types, too
  }
}

TEST(ApiText, DeepNestingIsReadAsAnyOther) {
  const std::string text = std::string(5000, '[') + std::string(5000, ']');
  const auto read = parse_api_text(text, "");
  ASSERT_TRUE(read.ok()) << read.message();
  EXPECT_EQ(read->dump(), text);
}

// encoding/json of Go refuses to decode more than 10,000 levels (maxNestingDepth).
TEST(ApiText, NestingThatNoApiServerTakesIsRefusedNotFollowed) {
  const auto nested = [](std::size_t levels, const std::string& open, char close) {
    std::string text;
    for (std::size_t i = 0; i < levels; ++i) text += open;
    return text + (open == "[" ? "" : "1") + std::string(levels, close);
  };
  EXPECT_TRUE(parse_api_text(nested(10'000, "[", ']'), "").ok());
  for (const std::size_t levels : {10'001U, 3'000'000U}) {
    EXPECT_EQ(parse_api_text(nested(levels, "[", ']'), "f").message(), "f:1: nested deeper than 10000 levels");
    EXPECT_EQ(parse_api_text(nested(levels, "{\"a\":\n", '}'), "f").message(),
              "f:10001: nested deeper than 10000 levels");
  }
  const std::string brackets = '"' + std::string(20'000, '[') + "\\\"" + std::string(20'000, '{') + '"';
  EXPECT_TRUE(parse_api_text(brackets, "").ok()) << "in a string they open nothing";
}

TEST(ApiText, WhatIsNoJsonIsRefusedWithItsPlace) {
  const auto read = parse_api_text("{\n \"a\": nope}", "F");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.message(), "F:2: not valid JSON: unexpected text at column 8");
  EXPECT_FALSE(parse_api_text("", "").ok());
  EXPECT_FALSE(parse_api_text("{} {}", "").ok());
  EXPECT_FALSE(parse_api_text("\"\xff\"", "").ok());
}

// Wherever an object stands: alone, in a watch event, in a list.
TEST(ApiText, WhatNobodyReadsOfAPodIsLeftOut) {
  const std::string pod =
      R"({"metadata":{"name":"p","managedFields":[{"manager":"kubectl","fieldsV1":{"f:spec":{}}}]},)"
      R"("spec":{"nodeName":"n","volumes":[{"name":"v"}],"tolerations":[],"initContainers":[{"name":"i","env":[]}],)"
      R"("containers":[{"name":"c","env":[{"name":"A","value":"B"}],"livenessProbe":{},"resources":{"limits":{"cpu":1}}}]},)"
      R"("status":{"phase":"Running","containerStatuses":[{"name":"c"}]}})";
  const json kept =
      json::parse(R"({"metadata":{"name":"p"},"spec":{"nodeName":"n","initContainers":[{"name":"i"}],)"
                  R"("containers":[{"name":"c","resources":{"limits":{"cpu":1}}}]},"status":{"phase":"Running"}})");
  EXPECT_EQ(*parse_api_text(pod, ""), kept);
  EXPECT_EQ((*parse_api_text(R"({"type":"ADDED","object":)" + pod + "}", ""))["object"], kept);
  EXPECT_EQ((*parse_api_text(R"({"items":[)" + pod + "]}", ""))["items"][0], kept);
}

TEST(ApiText, LabelsMayHaveTheNamesOfWhatNobodyReads) {
  const char* text =
      R"({"metadata":{"labels":{"env":"prod","volumes":"2","managedFields":"x","spec":"y"},"annotations":{"affinity":"z"}},)"
      R"("spec":{"nodeSelector":{"volumes":"fast"}},"env":1})";
  EXPECT_EQ(*parse_api_text(text, ""), json::parse(text));
}

}  // namespace
}  // namespace mortise::kube
