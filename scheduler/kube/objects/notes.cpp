#include "scheduler/kube/objects/notes.h"

#include <utility>

#include "scheduler/base/quote.h"

namespace mortise::kube {
namespace {

std::string grouped(int count, const std::string& first) {
  return std::to_string(count) + " (first: " + quote(first) + ")";
}

}  // namespace

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
  if (is_new) entries_.push_back({std::string(what), std::string(subject), 0, {}, {}, 0});
  Entry& entry = entries_[place->second];
  ++entry.count;
  if (entry.subjects.size() >= kMaxSubjects || !entry.subjects.emplace(subject).second) return;
  if (entry.news++ == 0) entry.new_subject = subject;
}

std::vector<std::string> Notes::take_news() {
  std::vector<std::string> lines;
  for (Entry& entry : entries_) {
    const int news = std::exchange(entry.news, 0);
    if (news == 0) continue;
    lines.push_back(entry.text);
    if (entry.count > 0) lines.back() += ": " + grouped(news, entry.new_subject);
  }
  const std::size_t left_out = left_out_ - std::exchange(left_out_told_, left_out_);
  if (left_out > 0) lines.push_back(std::to_string(left_out) + " more notes are left out");
  return lines;
}

std::vector<std::string> Notes::lines() const {
  std::vector<std::string> lines;
  for (const Entry& entry : entries_) {
    lines.push_back(entry.text);
    if (entry.count > 0) {
      lines.back() += ": " + grouped(entry.count, entry.first_subject);
    }
  }
  if (left_out_ > 0) lines.push_back(std::to_string(left_out_) + " more notes are left out");
  return lines;
}

}  // namespace mortise::kube
