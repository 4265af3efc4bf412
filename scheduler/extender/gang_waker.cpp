#include "scheduler/extender/gang_waker.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "scheduler/kube/client/patch_annotations.h"
#include "scheduler/kube/client/resource_path.h"

namespace mortise::extender {
namespace {

constexpr Nanoseconds kLookEvery = 50'000'000;
constexpr Nanoseconds kPatchTimeout = 3 * kSecond;
constexpr Nanoseconds kJitter = 4'000'000;

}  // namespace

void GangWaker::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::optional<GangKick> kick;
    std::optional<PlanMapName> discarded;
    if (!why_not_ || why_not_().empty()) {
      const std::lock_guard lock(mutex_);
      gangs_.tick();
      kick = gangs_.next_kick();
      discarded = gangs_.next_discarded();
    }
    if (discarded) (void)plans_.remove(*discarded);  // what stays goes with its owner
    if (!kick && discarded) continue;
    if (!kick) {
      waiter_.wait(kLookEvery, stop);
      continue;
    }
    // Not in step with others who do the same.
    waiter_.wait(static_cast<Nanoseconds>(rng_.below(kJitter)), stop);
    send(*kick, stop);
    sent_.push_back(clock_.now());
    waiter_.wait(until_next(), stop);
  }
}

/// A gang is woken as fast as may be, and no second has more than its share.
Nanoseconds GangWaker::until_next() {
  if (sent_.size() < kPerSecond) return 0;
  const Nanoseconds first = sent_.front();
  sent_.pop_front();
  return std::max<Nanoseconds>(0, first + kSecond - clock_.now());
}

/// Who is gone, or cannot be written to, is not tried again: kube-scheduler asks by itself some time.
void GangWaker::send(const GangKick& kick, const std::stop_token& stop) {
  kube::AnnotationPatch patch;
  patch.path = kube::resource_path("/api/v1", kick.ns, "pods", kick.name);
  patch.uid = kick.uid;
  patch.annotations.emplace(kGangStateAnnotation, kick.state);
  const auto done = kube::patch_annotations(client_, patch, {.timeout = kPatchTimeout, .stop = stop});
  ++(done.done() ? woken_ : failed_);
}

}  // namespace mortise::extender
