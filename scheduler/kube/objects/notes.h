#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mortise::kube {

/// What was skipped while reading a cluster, for the user. Many things skipped for one reason make one line. Beyond
/// kMaxNotes different ones, which only strangers' texts can make, they are only counted.
class Notes {
 public:
  static constexpr std::size_t kMaxNotes = 1000;
  static constexpr std::size_t kMaxSubjects = 10'000;  ///< of one sentence; more are counted, but are no news

  void add(std::string line);
  /// `what` is a sentence about several subjects, e.g. "pods without a node are left out".
  void add_one_of(std::string_view what, std::string_view subject);

  /// In the order in which they came up first.
  std::vector<std::string> lines() const;
  /// What came up since the last call, in the order in which it came up first. What was said of a subject once is no
  /// news, for the same object is read again and again.
  std::vector<std::string> take_news();

 private:
  struct Entry {
    std::string text;
    std::string first_subject;
    int count = 0;  ///< 0: a line of its own
    std::set<std::string, std::less<>> subjects = {};
    std::string new_subject = {};  ///< the first new one since news were taken
    int news = 1;                  ///< how many; of a line of its own: 1 until it was told
  };
  std::vector<Entry> entries_;
  std::size_t left_out_ = 0;
  std::size_t left_out_told_ = 0;
  std::map<std::string, std::size_t> groups_;  ///< text -> place in entries_
};

}  // namespace mortise::kube
