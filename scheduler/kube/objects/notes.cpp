#include "scheduler/kube/objects/notes.h"

#include <algorithm>
#include <utility>

#include "scheduler/base/quote.h"

namespace mortise::kube {

void Notes::add(std::string line) {
  entries_.push_back({std::move(line), {}, 0});
}

void Notes::add_one_of(std::string_view what, std::string_view subject) {
  const auto same = [&](const Entry& entry) { return entry.count > 0 && entry.text == what; };
  auto found = std::find_if(entries_.begin(), entries_.end(), same);
  if (found == entries_.end()) {
    found = entries_.insert(found, {std::string(what), std::string(subject), 0});
  }
  ++found->count;
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
