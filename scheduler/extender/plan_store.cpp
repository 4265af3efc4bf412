#include "scheduler/extender/plan_store.h"

#include <algorithm>

#include "scheduler/extender/gang_slot.h"
#include "scheduler/kube/client/config_map.h"

namespace mortise::extender {

using kube::Done;
using kube::Outcome;

namespace {

constexpr Nanoseconds kPause = 100'000'000;
constexpr Nanoseconds kLongestPause = 500'000'000;

std::string text_of(const PlanMapName& name) {
  return "ConfigMap " + name.first + "/" + name.second;
}

}  // namespace

Done ApiPlanStore::write_once(const PlanMap& plan) {
  kube::ConfigMap map;
  map.ns = plan.name.first;
  map.name = plan.name.second;
  map.labels = {{std::string(kPlanLabel), plan.gang}, {"app.kubernetes.io/managed-by", "mortise-extender"}};
  map.annotations = {{"mortise.dev/gang", plan.people}};
  map.owners = plan.owners;
  map.data = {{std::string(kPlanKey), plan.text}};
  const auto created = kube::create_config_map(client_, map, call());
  if (created.outcome != Outcome::kConflict) return {created.outcome, created.detail, created.retry_after};
  // Ours, from a write whose answer was lost, or somebody else's: the name follows from the plan.
  const auto there = read(plan.name);
  if (!there.done()) return {there.outcome, there.detail, there.retry_after};
  if (*there.value == plan.text) return {Outcome::kDone, ""};
  return {Outcome::kRefused, "it exists and holds something else"};
}

Done ApiPlanStore::write(const PlanMap& plan) {
  Done done{Outcome::kUnknown, "the extender is stopping"};
  for (int attempt = 0; attempt < kMaxAttempts && !stop_.stop_requested(); ++attempt) {
    if (attempt > 0) waiter_.wait(std::min(done.retry_after.value_or(kPause), kLongestPause), stop_);
    done = write_once(plan);
    // 404: there is no such namespace any more.
    if (done.outcome == Outcome::kNotFound) done.outcome = Outcome::kRefused;
    if (done.done() || done.outcome == Outcome::kRefused) break;
  }
  if (!done.done()) done.detail = text_of(plan.name) + ": " + done.detail;
  return done;
}

kube::Answer<std::string> ApiPlanStore::read(const PlanMapName& name) {
  const auto map = kube::read_config_map(client_, name.first, name.second, call());
  kube::Answer<std::string> answer{map.outcome, text_of(name) + ": " + map.detail, map.retry_after};
  if (!map.done()) return answer;
  const auto text = map.value->data.find(std::string(kPlanKey));
  answer.detail.clear();
  answer.value = text == map.value->data.end() ? std::string() : text->second;
  return answer;
}

Done ApiPlanStore::remove(const PlanMapName& name) {
  return kube::delete_config_map(client_, name.first, name.second, call());
}

Done PlanWriter::ensure(const PlanMap& plan) {
  std::unique_lock lock(mutex_);
  if (stored_.contains(plan.name)) return {Outcome::kDone, ""};
  const auto [entry, first] = active_.try_emplace(plan.name);
  if (!first) {
    const std::shared_ptr<Attempt> attempt = entry->second;
    changed_.wait(lock, [&] { return attempt->outcome.has_value(); });
    return *attempt->outcome;
  }
  const std::shared_ptr<Attempt> attempt = entry->second = std::make_shared<Attempt>();
  lock.unlock();
  const Done done = store_.write(plan);
  ++(done.done() ? written_ : failed_);
  lock.lock();
  attempt->outcome = done;
  active_.erase(plan.name);
  if (done.done()) stored_.insert(plan.name);
  changed_.notify_all();
  return done;
}

Done PlanWriter::remove(const PlanMapName& name) {
  {
    const std::lock_guard lock(mutex_);
    stored_.erase(name);
  }
  return store_.remove(name);
}

}  // namespace mortise::extender
