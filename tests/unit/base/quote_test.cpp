#include "scheduler/base/quote.h"

#include <gtest/gtest.h>

#include <string>

namespace mortise {
namespace {

TEST(Quote, PlainAndUtf8TextStaysAsItIs) {
  EXPECT_EQ(quote("node-1"), "\"node-1\"");
  EXPECT_EQ(quote("Knötchen-節点-\U0001F600"), "\"Knötchen-節点-\U0001F600\"");
  EXPECT_EQ(quote(""), "\"\"");
}

TEST(Quote, ControlCharactersAndPercentAreEscaped) {
  EXPECT_EQ(quote("a\nb\r\t\x7f"), "\"a\\x0ab\\x0d\\x09\\x7f\"");
  EXPECT_EQ(quote("100%"), "\"100\\x25\"");
  EXPECT_EQ(quote(std::string(1, '\0')), "\"\\x00\"");
}

TEST(Quote, BytesThatAreNotUtf8AreEscaped) {
  EXPECT_EQ(quote("\xFF"), "\"\\xff\"");
  EXPECT_EQ(quote("\xC0\xAF"), "\"\\xc0\\xaf\"") << "overlong";
  EXPECT_EQ(quote("\xED\xA0\x80"), "\"\\xed\\xa0\\x80\"") << "surrogate";
  EXPECT_EQ(quote("\xE7\xAF"), "\"\\xe7\\xaf\"") << "cut short";
  EXPECT_EQ(quote("\xF4\x90\x80\x80"), "\"\\xf4\\x90\\x80\\x80\"") << "beyond U+10FFFF";
}

TEST(Quote, LongTextIsCutBetweenCharacters) {
  EXPECT_EQ(quote(std::string(81, 'a')), "\"" + std::string(80, 'a') + "...\"");
  EXPECT_EQ(quote(std::string(79, 'a') + "é"), "\"" + std::string(79, 'a') + "...\"");
}

}  // namespace
}  // namespace mortise
