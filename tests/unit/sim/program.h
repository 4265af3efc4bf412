#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "sim/verbs.h"
#include "tests/unit/sim/scratch_dir.h"

namespace mortise::sim {

struct Ran {
  int code = -1;
  std::string out;
  std::string err;
};

/// Tests that call `mortise` through its own entry.
class Program : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(dir_.path() / name, std::ios::binary) << text;
  }
  std::string path(const std::string& name) const { return (dir_.path() / name).string(); }

  /// `command` is the verb with what all calls of it share.
  static Ran run_program(std::vector<std::string> command, const std::vector<std::string>& arguments) {
    command.insert(command.begin(), "mortise");
    command.insert(command.end(), arguments.begin(), arguments.end());
    std::vector<const char*> argv;
    for (const std::string& argument : command) argv.push_back(argument.c_str());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    Ran ran;
    ran.code = run_command_line(static_cast<int>(argv.size()), argv.data());
    ran.out = testing::internal::GetCapturedStdout();
    ran.err = testing::internal::GetCapturedStderr();
    return ran;
  }

  ScratchDir dir_;
};

}  // namespace mortise::sim
