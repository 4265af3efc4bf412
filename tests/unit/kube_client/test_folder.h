#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace mortise::test {

/// An empty folder that is there as long as the object.
class TestFolder {
 public:
  TestFolder() {
    std::string pattern = testing::TempDir() + "mortise_XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::string& path() const { return path_; }
  /// Writes a file the way kubelet replaces one: in full, under its name at once.
  std::string write(const std::string& name, const std::string& content) const {
    const std::string file = path_ + "/" + name;
    std::ofstream(file + ".new", std::ios::binary) << content;
    std::filesystem::rename(file + ".new", file);
    return file;
  }

 private:
  std::string path_;
};

}  // namespace mortise::test
