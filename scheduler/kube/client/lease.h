#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "scheduler/kube/client/answer.h"

namespace mortise::kube {

/// A coordination.k8s.io/v1 Lease. Times are the holder's wall clock: others only watch whether they change.
struct Lease {
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::string holder;                 ///< empty: nobody
  std::int64_t duration_seconds = 0;  ///< how long it holds from the moment its renewal is seen
  std::string acquire_time;           ///< as micro_time() writes it, or empty
  std::string renew_time;
  std::int64_t transitions = 0;
  std::map<std::string, std::string> annotations;
  std::string stored;  ///< the object as the server has it; an update keeps what it holds beyond the fields above
};

/// `2006-01-02T15:04:05.000000Z`.
std::string micro_time(std::chrono::system_clock::time_point time);

Answer<Lease> read_lease(ApiClient& client, const std::string& ns, const std::string& name,
                         const CallOptions& call = {});
/// kConflict: it exists.
Answer<Lease> create_lease(ApiClient& client, const Lease& lease, const CallOptions& call = {});
/// Writes holder, duration, times, transitions and annotations over the state with the lease's resource version, which
/// must be set. kConflict: there is a later state, or it was deleted and made anew.
Answer<Lease> update_lease(ApiClient& client, const Lease& lease, const CallOptions& call = {});

}  // namespace mortise::kube
