#include "sim/run_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sim/files.h"
#include "sim/report.h"
#include "tests/unit/sim/scratch_dir.h"

namespace mortise::sim {
namespace {

using testing::HasSubstr;

ReplayResult sample_run() {
  ReplayResult run;
  run.trace = "default";
  run.policy = "fgd";
  run.seed = 42;
  run.arrival = "inflate:1.3";
  run.nodes = 2;
  run.gpus = 10;
  run.pods_arrived = 7;
  run.pods_placed = 6;
  run.pods_failed = 1;
  run.allocation_pct = 61.05;
  run.frag_pct_of_idle = 13.94;
  run.frag_pct_of_capacity = 5.43;
  run.curve = {{0, 0.25, 13.941234567890123, 13.94}, {1, std::nullopt, std::nullopt, std::nullopt}};
  return run;
}

TEST(RunFile, IsReadBackAsItWasWritten) {
  const auto stored = parse_run_file(run_file(sample_run(), "abc"));
  ASSERT_TRUE(stored.has_value());
  EXPECT_EQ(stored->inputs_digest, "abc");
  EXPECT_EQ(stored->run, sample_run());
}

TEST(RunFile, EveryCutAndEveryChangedByteIsSeen) {
  const std::string text = run_file(sample_run(), "abc");
  for (std::size_t length = 0; length + 1 < text.size(); ++length) {  // the last byte is the line end
    EXPECT_FALSE(parse_run_file(text.substr(0, length)).has_value()) << "cut at " << length;
  }
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    std::string changed = text;
    changed[i] = changed[i] == '1' ? '2' : '1';
    EXPECT_FALSE(parse_run_file(changed).has_value()) << "byte " << i << ": " << changed;
  }
}

TEST(RunStore, FindsWhatWasSaved) {
  const ScratchDir dir;
  const RunStore store(dir.path() / "made" / "on the way");
  ASSERT_TRUE(store.open());
  ASSERT_TRUE(store.save(sample_run(), "abc"));
  const auto found = store.find("default", "fgd", 42, "abc");
  ASSERT_TRUE(found.run.has_value());
  EXPECT_EQ(*found.run, sample_run());
  EXPECT_EQ(found.note, "");
}

TEST(RunStore, AMissingRunIsNoCauseForANote) {
  const ScratchDir dir;
  const auto found = RunStore(dir.path()).find("default", "fgd", 42, "abc");
  EXPECT_FALSE(found.run.has_value());
  EXPECT_EQ(found.note, "");
}

TEST(RunStore, ARunOfOtherInputsIsNotUsed) {
  const ScratchDir dir;
  const RunStore store(dir.path());
  ASSERT_TRUE(store.save(sample_run(), "abc"));
  const auto found = store.find("default", "fgd", 42, "abd");
  EXPECT_FALSE(found.run.has_value());
  EXPECT_THAT(found.note, HasSubstr("other inputs"));
}

TEST(RunStore, ADamagedFileIsNotUsed) {
  const ScratchDir dir;
  const RunStore store(dir.path());
  for (const char* text : {"", "{", "[]", "{}", "null", "{\"digest\":1}", "not json"}) {
    std::ofstream(store.path("default", "fgd", 42)) << text;
    const auto found = store.find("default", "fgd", 42, "abc");
    EXPECT_FALSE(found.run.has_value());
    EXPECT_THAT(found.note, HasSubstr("damaged"));
  }
}

TEST(RunStore, PoliciesThatDifferInUnsafeCharactersHaveDifferentFiles) {
  const RunStore store("dir");
  const auto sum = store.path("t", "a+b", 1);
  const auto options = store.path("t", "a:b", 1);
  const auto plain = store.path("t", "a_b", 1);
  EXPECT_NE(sum, options);
  EXPECT_NE(sum, plain);
  EXPECT_EQ(store.path("t", "../../x", 1).parent_path(), "dir");
}

TEST(RunStore, SavingLeavesNoOtherFiles) {
  const ScratchDir dir;
  const RunStore store(dir.path());
  ASSERT_TRUE(store.save(sample_run(), "abc"));
  ASSERT_TRUE(store.save(sample_run(), "abd"));
  const auto begin = std::filesystem::directory_iterator(dir.path());
  EXPECT_EQ(std::distance(begin, std::filesystem::directory_iterator()), 1);
}

TEST(RunStore, AFileInPlaceOfTheFolderIsRefused) {
  const ScratchDir dir;
  std::ofstream(dir.path() / "file") << "x";
  const Status status = RunStore(dir.path() / "file").open();
  ASSERT_FALSE(status);
  EXPECT_THAT(status.message(), HasSubstr("file"));
}

TEST(WriteFile, AnErrorWhileWritingKeepsTheOldFile) {
  const ScratchDir dir;
  const auto path = dir.path() / "f";
  std::ofstream(path) << "old";
  const Status status = write_file(path, [](std::ostream& out) -> Status {
    out << "half";
    return Error{"gave up"};
  });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.message(), "gave up");
  EXPECT_EQ(*read_file(path), "old");
  const auto begin = std::filesystem::directory_iterator(dir.path());
  EXPECT_EQ(std::distance(begin, std::filesystem::directory_iterator()), 1);
}

TEST(WriteFile, ALinkStaysALink) {
  const ScratchDir dir;
  std::ofstream(dir.path() / "target") << "old";
  std::filesystem::create_symlink("target", dir.path() / "link");
  ASSERT_TRUE(write_file(dir.path() / "link", [](std::ostream& out) {
    out << "new";
    return ok_status();
  }));
  EXPECT_TRUE(std::filesystem::is_symlink(dir.path() / "link"));
  EXPECT_EQ(*read_file(dir.path() / "target"), "new");
}

TEST(WriteFile, AFullDiskIsAnError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  const Status status = write_file("/dev/full", [](std::ostream& out) {
    out << "text";
    return ok_status();
  });
  EXPECT_FALSE(status);
}

}  // namespace
}  // namespace mortise::sim
