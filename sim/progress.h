#pragma once

#include <cstdint>
#include <mutex>
#include <string>

namespace mortise::sim {

/// A progress bar on stderr; silent when stderr is not a terminal. May be advanced from several threads.
class Progress {
 public:
  Progress(std::string label, std::string unit);
  /// Wipes the bar.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// So many steps of so many are done.
  void at(std::uint64_t done, std::uint64_t total);
  /// A line on stderr, above the bar.
  void note(const std::string& line);

 private:
  static constexpr std::uint64_t kNotDrawn = 101;  ///< no percent, so that the next step draws

  void wipe();

  std::mutex mutex_;
  std::string label_;
  std::string unit_;
  std::uint64_t drawn_percent_ = kNotDrawn;
  bool on_terminal_;
};

}  // namespace mortise::sim
