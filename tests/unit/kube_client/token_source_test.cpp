#include "scheduler/kube/client/token_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/kube_client/test_folder.h"

namespace mortise::kube {
namespace {

using test::TestFolder;
using testing::HasSubstr;

/// Overwrites a file in place, so that nothing about it changes but its bytes.
void change_unnoticed(const std::string& file, const std::string& content) {
  const auto time = std::filesystem::last_write_time(file);
  std::fstream(file, std::ios::binary | std::ios::in | std::ios::out) << content;
  std::filesystem::last_write_time(file, time);
}

TEST(TokenSource, FixedToken) {
  const ManualClock clock;
  TokenSource tokens("abc", "", clock);
  EXPECT_EQ(*tokens.current(), "abc");
  EXPECT_EQ(*TokenSource("", "", clock).current(), "");
}

TEST(TokenSource, FileGoesBeforeFixedAndIsTrimmed) {
  const ManualClock clock;
  const TestFolder folder;
  TokenSource tokens("abc", folder.write("token", " def\n"), clock);
  EXPECT_EQ(*tokens.current(), "def");
}

TEST(TokenSource, AReplacedFileIsReadAtOnce) {
  const ManualClock clock;
  const TestFolder folder;
  TokenSource tokens("", folder.write("token", "one"), clock);
  EXPECT_EQ(*tokens.current(), "one");
  folder.write("token", "two");
  EXPECT_EQ(*tokens.current(), "two");
}

TEST(TokenSource, ItIsReadEveryMinuteWhateverTheFileLooksLike) {
  ManualClock clock;
  const TestFolder folder;
  const std::string file = folder.write("token", "one");
  TokenSource tokens("", file, clock);
  EXPECT_EQ(*tokens.current(), "one");
  change_unnoticed(file, "two");
  clock.advance(59 * kSecond);
  EXPECT_EQ(*tokens.current(), "one");
  clock.advance(1 * kSecond);
  EXPECT_EQ(*tokens.current(), "two");
}

TEST(TokenSource, ItIsReadAtOnceAfterTheServerRefusedIt) {
  const ManualClock clock;
  const TestFolder folder;
  const std::string file = folder.write("token", "one");
  TokenSource tokens("", file, clock);
  EXPECT_EQ(*tokens.current(), "one");
  change_unnoticed(file, "two");
  EXPECT_EQ(*tokens.current(), "one");
  tokens.distrust();
  EXPECT_EQ(*tokens.current(), "two");
}

TEST(TokenSource, TheLastTokenServesWhileTheFileCannotBeRead) {
  ManualClock clock;
  const TestFolder folder;
  const std::string file = folder.write("token", "one");
  TokenSource tokens("", file, clock);
  EXPECT_EQ(*tokens.current(), "one");
  std::filesystem::remove(file);
  EXPECT_EQ(*tokens.current(), "one");
  folder.write("token", "  \n");
  EXPECT_EQ(*tokens.current(), "one");
  folder.write("token", "two");
  EXPECT_EQ(*tokens.current(), "two");
}

TEST(TokenSource, WithoutAnyTokenTheFileIsNamed) {
  const ManualClock clock;
  const TestFolder folder;
  EXPECT_THAT(TokenSource("", folder.path() + "/none", clock).current().message(), HasSubstr("/none: cannot be read"));
  EXPECT_THAT(TokenSource("", folder.write("a", "\n"), clock).current().message(), HasSubstr("holds no token"));
  EXPECT_THAT(TokenSource("", folder.write("b", "x\r\nHost: y"), clock).current().message(),
              HasSubstr("is not a token"));
}

}  // namespace
}  // namespace mortise::kube
