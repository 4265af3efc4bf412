#include "sim/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace mortise::sim {

namespace {
constexpr std::uint64_t kBarWidth = 40;
}  // namespace

Progress::Progress(std::string label, std::string unit)
    : label_(std::move(label)), unit_(std::move(unit)), on_terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  wipe();
}

void Progress::at(std::uint64_t done, std::uint64_t total) {
  if (!on_terminal_ || total == 0) return;
  const std::uint64_t percent = done * 100 / total;
  const std::lock_guard lock(mutex_);
  // Once per percent: a write to the terminal costs more than many simulated arrivals.
  if (percent == drawn_percent_) return;
  drawn_percent_ = percent;
  const std::string filled(std::min(kBarWidth, done * kBarWidth / total), '#');
  std::fprintf(stderr, "\r%s [%-*s] %llu of %llu %s", label_.c_str(), static_cast<int>(kBarWidth), filled.c_str(),
               static_cast<unsigned long long>(done), static_cast<unsigned long long>(total), unit_.c_str());
  std::fflush(stderr);
}

void Progress::note(const std::string& line) {
  const std::lock_guard lock(mutex_);
  wipe();
  std::fprintf(stderr, "%s\n", line.c_str());
  drawn_percent_ = kNotDrawn;
}

void Progress::wipe() {
  if (on_terminal_) std::fprintf(stderr, "\r\033[K");
}

}  // namespace mortise::sim
