#include "scheduler/extender/log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

namespace mortise::extender {
namespace {

/// 2009-02-13T23:31:30Z is 1,234,567,890 s after 1970: `date -u -d @1234567890`.
constexpr Nanoseconds kThen = 1'234'567'890 * kSecond + 42'000;

class LogTest : public testing::Test {
 protected:
  LogTest() { clock_.advance(kThen); }
  ~LogTest() override {
    std::fclose(file_);
    std::free(bytes_);
  }
  std::string written() {
    std::fflush(file_);
    return {bytes_, size_};
  }

  ManualClock clock_;
  char* bytes_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* file_ = open_memstream(&bytes_, &size_);
};

TEST_F(LogTest, TextQuotesOnlyWhatCouldBeMisread) {
  Log log(file_, clock_, LogLevel::kInfo, LogFormat::kText);
  log.write(LogLevel::kWarn, "not_bound", {{"pod", "default/a"}, {"error", "no \"room\""}, {"node", ""}, {"count", 3}});
  EXPECT_EQ(written(),
            "ts=2009-02-13T23:31:30.000042Z level=warn event=not_bound pod=default/a error=\"no \\\"room\\\"\" "
            "node=\"\" count=3\n");
}

TEST_F(LogTest, JsonIsOneObjectALineWhateverTheValues) {
  Log log(file_, clock_, LogLevel::kDebug, LogFormat::kJson);
  log.write(LogLevel::kDebug, "filter", {{"pod", "a\nb\xff"}, {"seconds", 0.25}, {"candidates", 5000}});
  const std::string text = written();
  ASSERT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  const auto line = nlohmann::json::parse(text);
  EXPECT_EQ(line["ts"], "2009-02-13T23:31:30.000042Z");
  EXPECT_EQ(line["level"], "debug");
  EXPECT_EQ(line["event"], "filter");
  EXPECT_EQ(line["pod"], "a\nb\xef\xbf\xbd");  // what is no UTF-8 becomes the replacement character
  EXPECT_EQ(line["seconds"], 0.25);
  EXPECT_EQ(line["candidates"], 5000);
}

TEST_F(LogTest, WhatMattersLessThanTheLevelIsNotWritten) {
  Log log(file_, clock_, LogLevel::kWarn, LogFormat::kText);
  EXPECT_FALSE(log.wants(LogLevel::kInfo));
  EXPECT_TRUE(log.wants(LogLevel::kError));
  log.write(LogLevel::kInfo, "bound", {});
  EXPECT_EQ(written(), "");
}

}  // namespace
}  // namespace mortise::extender
