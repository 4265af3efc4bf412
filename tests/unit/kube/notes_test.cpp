#include "scheduler/kube/objects/notes.h"

#include <gtest/gtest.h>

namespace mortise::kube {
namespace {

TEST(Notes, OneReasonMakesOneLine) {
  Notes notes;
  for (const char* pod : {"a", "b", "c"}) notes.add_one_of("pods left out", pod);
  EXPECT_EQ(notes.lines(), std::vector<std::string>{"pods left out: 3 (first: \"a\")"});
}

TEST(Notes, NewsAreWhatWasNotSaidOfThatSubjectBefore) {
  Notes notes;
  notes.add("a line");
  notes.add_one_of("nodes closed", "a");
  notes.add_one_of("nodes closed", "b");
  EXPECT_EQ(notes.take_news(), (std::vector<std::string>{"a line", "nodes closed: 2 (first: \"a\")"}));
  notes.add_one_of("nodes closed", "b");
  EXPECT_EQ(notes.take_news(), std::vector<std::string>{});
  notes.add_one_of("nodes closed", "c");
  EXPECT_EQ(notes.take_news(), std::vector<std::string>{"nodes closed: 1 (first: \"c\")"});
  EXPECT_EQ(notes.lines().back(), "nodes closed: 4 (first: \"a\")");
}

TEST(Notes, StrangersTextsDoNotFillTheMemory) {
  Notes notes;
  for (std::size_t i = 0; i < 3 * Notes::kMaxNotes; ++i) notes.add_one_of("reason " + std::to_string(i), "p");
  notes.add_one_of("reason 0", "q");
  ASSERT_EQ(notes.lines().size(), Notes::kMaxNotes + 1);
  EXPECT_EQ(notes.lines().front(), "reason 0: 2 (first: \"p\")");
  EXPECT_EQ(notes.lines().back(), "2000 more notes are left out");
}

}  // namespace
}  // namespace mortise::kube
