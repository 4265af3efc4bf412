#include "scheduler/extender/readiness.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace mortise::extender {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"synced", "leader", "serving"};
/// The conditions without which an answer would be wrong come first.
constexpr std::size_t kNeededToAnswer = 2;

}  // namespace

Readiness::Readiness() : unmet_{"the cluster is not read yet", "not known yet", ""} {}

void Readiness::set_met(Condition condition) {
  set_unmet(condition, "");
}

void Readiness::set_unmet(Condition condition, std::string why) {
  const std::lock_guard lock(mutex_);
  unmet_[static_cast<std::size_t>(condition)] = std::move(why);
}

void Readiness::ask_leader(std::function<std::string()> why_not) {
  const std::lock_guard lock(mutex_);
  leader_why_not_ = std::move(why_not);
}

bool Readiness::knows(std::string_view name) {
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

std::string Readiness::report(std::string_view exclude) const {
  return report_first(kCount, exclude);
}

std::string Readiness::obstacle() const {
  std::string text = report_first(kNeededToAnswer, {});
  text = text.substr(0, text.find('\n'));
  return text.empty() ? text : "not ready: " + text;
}

std::string Readiness::report_first(std::size_t count, std::string_view exclude) const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    if (kNames[i] == exclude) continue;
    const bool asks = i == static_cast<std::size_t>(Condition::kLeader) && leader_why_not_;
    const std::string why = asks ? leader_why_not_() : unmet_[i];
    if (!why.empty()) text += std::string(kNames[i]) + ": " + why + "\n";
  }
  return text;
}

}  // namespace mortise::extender
