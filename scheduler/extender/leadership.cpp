#include "scheduler/extender/leadership.h"

#include <algorithm>
#include <utility>

namespace mortise::extender {

using kube::Answer;
using kube::Lease;
using kube::Outcome;
using WallTime = std::chrono::system_clock::time_point;

Answer<Lease> ApiLeaseStore::read() {
  return kube::read_lease(client_, ns_, name_);
}
Answer<Lease> ApiLeaseStore::create(const Lease& lease) {
  Lease named = lease;
  named.ns = ns_;
  named.name = name_;
  return kube::create_lease(client_, named);
}
Answer<Lease> ApiLeaseStore::update(const Lease& lease) {
  return kube::update_lease(client_, lease);
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

void Leadership::renewed(const Answer<Lease>& answer, Nanoseconds sent) {
  if (answer.done()) {
    leads_until_ = sent + kLeadsFor;
    note("the lease was not renewed in time");
  } else {
    note("the lease is not ours: " + answer.detail);
  }
}

void Leadership::take(Lease lease, WallTime now) {
  const std::string time = kube::micro_time(now);
  if (lease.holder != identity_) {
    lease.acquire_time = time;
    lease.transitions += 1;
  }
  lease.holder = identity_;
  lease.duration_seconds = kLeaseTime / kSecond;
  lease.renew_time = time;
  const Nanoseconds sent = clock_.now();
  renewed(store_.update(lease), sent);
}

void Leadership::step(WallTime now) {
  const Answer<Lease> read = store_.read();
  if (read.outcome == Outcome::kNotFound) {
    Lease lease;
    lease.holder = identity_;
    lease.duration_seconds = kLeaseTime / kSecond;
    lease.acquire_time = lease.renew_time = kube::micro_time(now);
    const Nanoseconds sent = clock_.now();
    renewed(store_.create(lease), sent);
    return;
  }
  if (!read.done()) {
    note("the lease cannot be read: " + read.detail);
    return;
  }
  const Lease& lease = *read.value;
  if (lease.holder == identity_ || lease.holder.empty()) {
    take(lease, now);
    return;
  }
  if (lease.resource_version != seen_version_) {
    seen_version_ = lease.resource_version;
    seen_at_ = clock_.now();
  }
  const Nanoseconds theirs = std::max(kLeaseTime, lease.duration_seconds * kSecond);
  if (clock_.now() - seen_at_ > theirs) {
    take(lease, now);
  } else {
    note(lease.holder + " leads");
  }
}

void Leadership::resign(WallTime now) {
  if (!leads()) return;
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
