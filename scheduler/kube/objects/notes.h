#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mortise::kube {

/// What was skipped while reading a cluster, for the user. Many things skipped for one reason make one line. Beyond
/// kMaxNotes different ones, which only strangers' texts can make, they are only counted.
class Notes {
 public:
  static constexpr std::size_t kMaxNotes = 1000;

  void add(std::string line);
  /// `what` is a sentence about several subjects, e.g. "pods without a node are left out".
  void add_one_of(std::string_view what, std::string_view subject);

  /// In the order in which they came up first.
  std::vector<std::string> lines() const;

 private:
  struct Entry {
    std::string text;
    std::string first_subject;
    int count = 0;  ///< 0: a line of its own
  };
  std::vector<Entry> entries_;
  std::size_t left_out_ = 0;
  std::map<std::string, std::size_t> groups_;  ///< text -> place in entries_
};

}  // namespace mortise::kube
