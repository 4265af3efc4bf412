#include "scheduler/extender/leadership.h"

#include <algorithm>
#include <utility>

namespace mortise::extender {

using kube::Answer;
using kube::Lease;
using kube::Outcome;
using WallTime = std::chrono::system_clock::time_point;

namespace {

/// What a replica may call itself. Anything else in the annotation was not written by one.
bool is_identity(const std::string& text) {
  constexpr std::size_t kMaxBytes = 512;
  const auto printable = [](unsigned char c) { return c > 0x20 && c < 0x7F; };
  return !text.empty() && text.size() <= kMaxBytes && std::all_of(text.begin(), text.end(), printable);
}

// After a request that got no answer there is time for another step, which reads and writes.
static_assert(2 * Leadership::kEvery + ApiLeaseStore::kTimeout < Leadership::kLeadsFor);

}  // namespace

Answer<Lease> ApiLeaseStore::read() {
  return kube::read_lease(client_, ns_, name_, {.timeout = timeout_, .stop = {}});
}
Answer<Lease> ApiLeaseStore::create(const Lease& lease) {
  Lease named = lease;
  named.ns = ns_;
  named.name = name_;
  return kube::create_lease(client_, named, {.timeout = timeout_, .stop = {}});
}
Answer<Lease> ApiLeaseStore::update(const Lease& lease) {
  return kube::update_lease(client_, lease, {.timeout = timeout_, .stop = {}});
}

std::string Leadership::why_not() const {
  if (leads()) return {};
  const std::lock_guard lock(mutex_);
  return why_not_;
}

void Leadership::note(std::string text) {
  const std::lock_guard lock(mutex_);
  why_not_ = std::move(text);
}

/// The other replica that asks for the lease; empty: none does.
std::string Leadership::other_asker(const Lease& lease) const {
  const auto found = lease.annotations.find(kAskedByAnnotation);
  const bool other = found != lease.annotations.end() && found->second != identity_ && is_identity(found->second);
  return other ? found->second : std::string();
}

Outcome Leadership::renewed(const Answer<Lease>& answer, Nanoseconds sent) {
  if (answer.done()) {
    leads_until_ = sent + kLeadsFor;
    note("the lease was not renewed in time");
  } else {
    note("the lease is not ours: " + answer.detail);
  }
  return answer.outcome;
}

Outcome Leadership::take(Lease lease, WallTime now) {
  const std::string time = kube::micro_time(now);
  if (lease.holder != identity_) {
    lease.acquire_time = time;
    lease.transitions += 1;
  }
  lease.holder = identity_;
  lease.duration_seconds = kLeaseTime / kSecond;
  lease.renew_time = time;
  // Who still asks writes it again: what is found there at the next renewal is never older than this one.
  lease.annotations.erase(kAskedByAnnotation);
  const Nanoseconds sent = clock_.now();
  return renewed(store_.update(lease), sent);
}

/// From the first call on it does not lead. While Bindings are on their way the lease is neither given back nor
/// renewed: at the latest it runs out.
Outcome Leadership::hand_over(Lease lease, WallTime now) {
  leads_until_ = 0;
  if (const std::string asker = other_asker(lease); !asker.empty()) left_to_ = asker;
  note("the lease is being left to " + left_to_);
  if (busy_ && busy_()) return Outcome::kLater;
  lease.holder.clear();
  lease.renew_time = kube::micro_time(now);
  return store_.update(lease).outcome;
}

/// By a write over the state that was read, so it never undoes a renewal.
void Leadership::ask_for(Lease lease) {
  const auto found = lease.annotations.find(kAskedByAnnotation);
  const bool said = found != lease.annotations.end() && is_identity(found->second);
  if (said || clock_.now() - asked_for_at_ < kAskEvery) return;
  asked_for_at_ = clock_.now();
  lease.annotations[kAskedByAnnotation] = identity_;
  (void)store_.update(lease);
}

void Leadership::step(WallTime now) {
  // Somebody else wrote in between, be it only to ask for the lease.
  if (attempt(now) == Outcome::kConflict) (void)attempt(now);
}

Outcome Leadership::attempt(WallTime now) {
  const Answer<Lease> read = store_.read();
  if (read.outcome == Outcome::kNotFound) {
    left_to_.clear();
    Lease lease;
    lease.holder = identity_;
    lease.duration_seconds = kLeaseTime / kSecond;
    lease.acquire_time = lease.renew_time = kube::micro_time(now);
    const Nanoseconds sent = clock_.now();
    return renewed(store_.create(lease), sent);
  }
  if (!read.done()) {
    note("the lease cannot be read: " + read.detail);
    return read.outcome;
  }
  const Lease& lease = *read.value;
  const std::string asker = other_asker(lease);
  if (lease.holder == identity_) {
    if (!left_to_.empty() || (!asker.empty() && !asked_lately())) return hand_over(lease, now);
    return take(lease, now);
  }
  left_to_.clear();
  // Not the resource version: who asks for the lease changes that, too, and the holder may be long dead.
  if (const std::string renewal = lease.holder + " " + lease.renew_time; renewal != seen_renewal_) {
    seen_renewal_ = renewal;
    seen_at_ = clock_.now();
  }
  const bool free = lease.holder.empty();
  const Nanoseconds theirs = free ? kLeftToAsker : std::max(kLeaseTime, lease.duration_seconds * kSecond);
  if ((free && asker.empty()) || clock_.now() - seen_at_ > theirs) return take(lease, now);
  note(free ? "the lease is left to " + asker : lease.holder + " leads");
  if (asked_lately()) ask_for(lease);
  return Outcome::kDone;
}

void Leadership::resign(WallTime now) {
  if (!leads() && left_to_.empty()) return;
  leads_until_ = 0;
  note("it has resigned");
  const Answer<Lease> read = store_.read();
  if (!read.done() || read.value->holder != identity_) return;
  Lease lease = *read.value;
  lease.holder.clear();
  lease.renew_time = kube::micro_time(now);
  (void)store_.update(lease);
}

}  // namespace mortise::extender
