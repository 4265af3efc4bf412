#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace mortise::test {

/// A file with the given content that is there as long as the object.
class TempFile {
 public:
  explicit TempFile(const std::string& content) {
    const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
    static int count = 0;
    path_ = testing::TempDir() + "mortise_" + test->test_suite_name() + "_" + test->name() + "_" +
            std::to_string(++count) + ".txt";
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TempFile() { std::filesystem::remove(path_); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace mortise::test
