#include "scheduler/kube/objects/notes.h"

#include <utility>

#include "scheduler/base/quote.h"

namespace mortise::kube {

void Notes::add(std::string line) {
  if (entries_.size() >= kMaxNotes) {
    ++left_out_;
    return;
  }
  entries_.push_back({std::move(line), {}, 0});
}

void Notes::add_one_of(std::string_view what, std::string_view subject) {
  if (entries_.size() >= kMaxNotes && !groups_.contains(std::string(what))) {
    ++left_out_;
    return;
  }
  const auto [place, is_new] = groups_.try_emplace(std::string(what), entries_.size());
  if (is_new) entries_.push_back({std::string(what), std::string(subject), 0});
  ++entries_[place->second].count;
}

std::vector<std::string> Notes::lines() const {
  std::vector<std::string> lines;
  for (const Entry& entry : entries_) {
    lines.push_back(entry.text);
    if (entry.count > 0) {
      lines.back() += ": " + std::to_string(entry.count) + " (first: " + quote(entry.first_subject) + ")";
    }
  }
  if (left_out_ > 0) lines.push_back(std::to_string(left_out_) + " more notes are left out");
  return lines;
}

}  // namespace mortise::kube
