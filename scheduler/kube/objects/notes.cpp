#include "scheduler/kube/objects/notes.h"

#include <utility>

#include "scheduler/base/quote.h"

namespace mortise::kube {

void Notes::add(std::string line) {
  entries_.push_back({std::move(line), {}, 0});
}

void Notes::add_one_of(std::string_view what, std::string_view subject) {
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
  return lines;
}

}  // namespace mortise::kube
