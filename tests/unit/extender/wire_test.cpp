#include "scheduler/extender/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mortise::extender {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Keeps the bytes that the views point into.
struct Read {
  std::string body;
  Result<ExtenderArgs> args;

  explicit Read(std::string text) : body(std::move(text)), args(read_extender_args(body)) {}

  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const AskedNode& node : args->nodes) out.emplace_back(node.name);
    return out;
  }
};

std::string problem(std::string text) {
  const Read read(std::move(text));
  return read.args.ok() ? "read" : read.args.message();
}

TEST(ExtenderArgs, NameFormIsRead) {
  const Read read(R"({"Pod":{"metadata":{"name":"p"}},"Nodes":null,"NodeNames":["n1","n2"]})");
  ASSERT_TRUE(read.args.ok()) << read.args.message();
  EXPECT_EQ(read.args->pod, R"({"metadata":{"name":"p"}})");
  EXPECT_TRUE(read.args->has_names);
  EXPECT_FALSE(read.args->has_nodes);
  EXPECT_THAT(read.names(), ElementsAre("n1", "n2"));
}

TEST(ExtenderArgs, NodeFormKeepsTheObjectsAsTheyCame) {
  const Read read(
      R"({"Pod":{},"Nodes":{"metadata":{},"items":[{"spec":{ "x" : [1, 2] },"metadata":{"labels":{"a":"b"},"name":"n1"}} ,)"
      R"({"metadata":{"name":"n2"}}]},"NodeNames":null})");
  ASSERT_TRUE(read.args.ok()) << read.args.message();
  EXPECT_FALSE(read.args->has_names);
  EXPECT_TRUE(read.args->has_nodes);
  EXPECT_THAT(read.names(), ElementsAre("n1", "n2"));
  EXPECT_EQ(read.args->nodes[0].object, R"({"spec":{ "x" : [1, 2] },"metadata":{"labels":{"a":"b"},"name":"n1"}})");
  EXPECT_EQ(read.args->nodes[1].object, R"({"metadata":{"name":"n2"}})");
}

TEST(ExtenderArgs, KeysMatchInAnyCase) {
  const Read read(R"({"pod":{"a":1},"nodenames":["n1"],"NODES":{"Items":[{"Metadata":{"NAME":"n2"}}]}})");
  ASSERT_TRUE(read.args.ok()) << read.args.message();
  EXPECT_EQ(read.args->pod, R"({"a":1})");
  EXPECT_THAT(read.names(), ElementsAre("n1", "n2"));
}

TEST(ExtenderArgs, EscapedKeysAreTheKeysTheySpell) {
  EXPECT_THAT(Read(R"({"Node\u004eames":["n1"]})").names(), ElementsAre("n1"));
}

TEST(ExtenderArgs, TheLastOfTwoEqualKeysWins) {
  EXPECT_THAT(Read(R"({"NodeNames":["a"],"nodenames":["b"]})").names(), ElementsAre("b"));
  EXPECT_FALSE(Read(R"({"NodeNames":["a"],"NodeNames":null})").args->has_names);
  EXPECT_EQ(Read(R"({"Pod":{"a":1},"pod":{"b":2}})").args->pod, R"({"b":2})");
}

TEST(ExtenderArgs, UnknownFieldsAreIgnored) {
  const Read read(
      R"({"Extra":[{"deep":[null,true,-1.5e-3,""]}],"NodeNames":["n1"],"Big":123456789012345678901234567890})");
  ASSERT_TRUE(read.args.ok()) << read.args.message();
  EXPECT_THAT(read.names(), ElementsAre("n1"));
}

TEST(ExtenderArgs, NullAndMissingAreNotGiven) {
  for (const char* text : {"{}", "null", R"({"Pod":null,"Nodes":null,"NodeNames":null})"}) {
    const Read read(text);
    ASSERT_TRUE(read.args.ok()) << text << ": " << read.args.message();
    EXPECT_EQ(read.args->pod, "") << text;
    EXPECT_FALSE(read.args->has_names || read.args->has_nodes) << text;
    EXPECT_THAT(read.names(), IsEmpty()) << text;
  }
}

TEST(ExtenderArgs, EmptyListsAreGiven) {
  EXPECT_TRUE(Read(R"({"NodeNames":[]})").args->has_names);
  EXPECT_TRUE(Read(R"({"Nodes":{"items":null}})").args->has_nodes);
  EXPECT_TRUE(Read(R"({"Nodes":{}})").args->has_nodes);
}

// Go decodes null in a list of strings, or of structs, into the zero value.
TEST(ExtenderArgs, NullEntriesHaveEmptyNames) {
  EXPECT_THAT(Read(R"({"NodeNames":["a",null,""],"Nodes":{"items":[null,{"metadata":null}]}})").names(),
              ElementsAre("a", "", "", "", ""));
}

TEST(ExtenderArgs, EscapedAndUtf8NamesAreTheSameName) {
  EXPECT_THAT(Read(R"({"NodeNames":["n\u00f6d","nöd","\ud83d\ude00","tab\t\"\\"]})").names(),
              ElementsAre("nöd", "nöd", "😀", "tab\t\"\\"));
}

TEST(ExtenderArgs, OnlyTheFirstValueCounts) {
  for (const char* tail : {" ", "\n{\"NodeNames\":[\"b\"]}", "}", "]", "\"", " garbage", "\xff\xfe", "{\"open\":[\""}) {
    const Read read(std::string(R"({"Pod":{},"NodeNames":["a"]})") + tail);
    ASSERT_TRUE(read.args.ok()) << tail << ": " << read.args.message();
    EXPECT_THAT(read.names(), ElementsAre("a")) << tail;
  }
}

TEST(ExtenderArgs, AnEmptyBodyIsAnError) {
  EXPECT_EQ(problem(""), "request has no body");
  EXPECT_EQ(problem(" \r\n\t"), "request has no body");
}

TEST(ExtenderArgs, OtherThanAnObjectIsAnError) {
  for (const char* text : {"[]", "\"x\"", "1", "true", "nullx", "x"}) {
    EXPECT_EQ(problem(text), "request must be a JSON object") << text;
  }
}

TEST(ExtenderArgs, AWrongTypeIsAnErrorThatNamesTheField) {
  EXPECT_THAT(problem(R"({"Pod":[]})"), HasSubstr("Pod must be an object"));
  EXPECT_THAT(problem(R"({"NodeNames":"n1"})"), HasSubstr("NodeNames must be an array of strings"));
  EXPECT_THAT(problem(R"({"NodeNames":["n1",2]})"), HasSubstr("each entry of NodeNames must be a string"));
  EXPECT_THAT(problem(R"({"Nodes":[]})"), HasSubstr("Nodes must be an object with items"));
  EXPECT_THAT(problem(R"({"Nodes":{"items":{}}})"), HasSubstr("Nodes.items must be an array of Node objects"));
  EXPECT_THAT(problem(R"({"Nodes":{"items":["n1"]}})"), HasSubstr("each of Nodes.items must be a Node object"));
  EXPECT_THAT(problem(R"({"Nodes":{"items":[{"metadata":1}]}})"), HasSubstr("metadata of a Node must be an object"));
  EXPECT_THAT(problem(R"({"Nodes":{"items":[{"metadata":{"name":1}}]}})"),
              HasSubstr("the name of a Node must be a string (near byte 39)"));
}

// Each of these breaks the JSON grammar in a part of the request that nothing reads.
TEST(ExtenderArgs, MalformedJsonIsAnErrorWhereverItIs) {
  for (const char* text : {R"({"Pod":{"a":tru}})",
                           R"({"Pod":{"a":nul}})",
                           R"({"Pod":{"a":01}})",
                           R"({"Pod":{"a":1.}})",
                           R"({"Pod":{"a":-}})",
                           R"({"Pod":{"a":.5}})",
                           R"({"Pod":{"a":1e}})",
                           R"({"Pod":{"a":+1}})",
                           R"({"Pod":{"a":"\x"}})",
                           R"({"Pod":{"a":"\ud800"}})",
                           R"({"Pod":{"\u12":1}})",
                           R"({"Pod":{"a" 1}})",
                           R"({"Pod":{"a":1 "b":2}})",
                           R"({"Pod":{"a":1,}})",
                           R"({"Pod":{a:1}})",
                           R"({"Pod":{"a":[1,]}})",
                           R"({"Pod":{"a":[}}})",
                           R"({"Pod":{"a":[1}}})",
                           R"({"Pod":{"a":"b"c}})",
                           R"({"NodeNames":["a":{}},"x":[1]})",
                           R"({"Pod":{"a":["b":{}},"c":1}})",
                           R"({"Nodes":{"items":[{"metadata":{"name":"a":{}},"x":[1]}]}})",
                           R"({"x":[1 2]})",
                           R"({"NodeNames":["a")",
                           R"({"NodeNames":["a"],)",
                           R"({"Pod":{"a":1})",
                           R"({"Nodes":{"items":[{"metadata":{"name":"n"},"x":tru}]}})",
                           "{",
                           R"({"Pod)",
                           R"({"Pod":{"a":"b)"}) {
    EXPECT_THAT(problem(text), HasSubstr("request is not valid JSON")) << text;
  }
  EXPECT_THAT(problem("{\"Pod\":{\"a\":\"\xff\"}}"), HasSubstr("request is not valid JSON"));
  EXPECT_THAT(problem("{\"Pod\":{\"a\":\"line\nbreak\"}}"), HasSubstr("request is not valid JSON"));
}

TEST(ExtenderArgs, DeepNestingIsRefusedNotFollowed) {
  const auto nested = [](int depth) {
    return R"({"x":)" + std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']') + "}";
  };
  EXPECT_EQ(problem(nested(500)), "read");
  EXPECT_THAT(problem(nested(600)), HasSubstr("nested too deeply"));
  EXPECT_THAT(problem(nested(100'000)), HasSubstr("nested too deeply"));
}

TEST(BindingArgs, AllFourFieldsAreRead) {
  std::string body = R"({"PodName":"p","podnamespace":"ns","PodUID":"u\u0031","Node":"n"})";
  const auto args = read_binding_args(body);
  ASSERT_TRUE(args.ok()) << args.message();
  EXPECT_EQ(args->pod_name, "p");
  EXPECT_EQ(args->pod_namespace, "ns");
  EXPECT_EQ(args->pod_uid, "u1");
  EXPECT_EQ(args->node, "n");
}

TEST(BindingArgs, AWrongTypeIsAnError) {
  std::string body = R"({"PodName":"p","Node":["n"]})";
  EXPECT_THAT(read_binding_args(body).message(), HasSubstr("Node must be a string"));
}

TEST(FilterResult, NameFormHasNullNodesAndNoFieldLeftOut) {
  FilterResult result;
  result.has_names = true;
  result.reasons = {"busy", "gone"};
  result.nodes = {{"a", {}, true}, {"b", {}, true, Verdict::kFailed, 0}, {"c", {}, true, Verdict::kUnresolvable, 1}};
  EXPECT_EQ(write_filter_result(result), R"({"Nodes":null,"NodeNames":["a"],"FailedNodes":{"b":"busy"},)"
                                         R"("FailedAndUnresolvableNodes":{"c":"gone"},"Error":""})");
}

TEST(FilterResult, NodeFormSendsTheObjectsBack) {
  FilterResult result;
  result.has_nodes = true;
  result.reasons = {"busy"};
  result.nodes = {{"a", R"({"metadata":{"name":"a"}})"},
                  {"b", R"({"metadata":{"name":"b"}})", false, Verdict::kFailed, 0}};
  EXPECT_EQ(write_filter_result(result),
            R"({"Nodes":{"metadata":{},"items":[{"metadata":{"name":"a"}}]},"NodeNames":null,)"
            R"("FailedNodes":{"b":"busy"},"FailedAndUnresolvableNodes":{},"Error":""})");
}

TEST(FilterResult, WithoutAnyFormThereIsAnEmptyListOfNames) {
  EXPECT_EQ(write_filter_result({}),
            R"({"Nodes":null,"NodeNames":[],"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""})");
}

TEST(FilterResult, AnErrorStandsAlone) {
  FilterResult result;
  result.error = "say \"no\"";
  EXPECT_EQ(
      write_filter_result(result),
      R"({"Nodes":null,"NodeNames":null,"FailedNodes":null,"FailedAndUnresolvableNodes":null,"Error":"say \"no\""})");
}

TEST(FilterResult, TextsAreEscaped) {
  FilterResult result;
  result.has_names = true;
  result.reasons = {"tab\there"};
  result.nodes = {{"q\"\\\n\x01ö", {}, true, Verdict::kFailed, 0}};
  EXPECT_THAT(write_filter_result(result), HasSubstr(R"("FailedNodes":{"q\"\\\n\u0001ö":"tab\there"})"));
}

TEST(HostPriorities, AreABareArrayOfWholeNumbers) {
  EXPECT_EQ(write_priorities({{"a", 10}, {"b", 0}}), R"([{"Host":"a","Score":10},{"Host":"b","Score":0}])");
  EXPECT_EQ(write_priorities({}), "[]");
}

TEST(BindingResult, IsOneField) {
  EXPECT_EQ(write_binding_result(""), R"({"Error":""})");
  EXPECT_EQ(write_binding_result("no"), R"({"Error":"no"})");
}

}  // namespace
}  // namespace mortise::extender
