#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/topology/index_set.h"
#include "scheduler/topology/numa_mask.h"

namespace mortise::topology {

/// Why kubelet fails a pod (status.reason).
enum class Reason {
  kNone,
  kTopologyAffinity,     ///< TopologyAffinityError: the merged hint was refused
  kUnexpectedAdmission,  ///< UnexpectedAdmissionError: a manager could not allocate
  kSmtAlignment,         ///< SMTAlignmentError: full-pcpus-only
};

/// Kubelet's spelling; empty for kNone.
std::string_view to_text(Reason reason);

/// A manager refused to allocate.
struct Refusal {
  Reason reason = Reason::kNone;
  std::string message;

  bool refused() const { return reason != Reason::kNone; }
};

inline Refusal unexpected(const std::string& cause) {
  return {Reason::kUnexpectedAdmission, "Allocate failed due to " + cause + ", which is unexpected"};
}

/// What one NUMA node, or a set of nodes, lacks for one resource of one container.
struct Shortage {
  std::string container;  ///< empty: the pod as a whole (scope pod)
  std::string resource;
  NumaMask nodes = 0;
  std::int64_t asked = 0;
  std::int64_t free = 0;
  std::int64_t installed = 0;
  bool enough = false;  ///< the amount is there; the memory manager's groups or devices that must be reused forbid it
};

/// `count` of these devices; nothing that kubelet promises says which.
struct SomeDevices {
  IndexSet of;
  std::int64_t count = 0;
};

struct DeviceGrant {
  std::size_t resource = 0;
  IndexSet exact;
  std::vector<SomeDevices> some;
};

struct ContainerOutcome {
  std::string name;
  NumaMask affinity = kAnyNuma;
  bool preferred = false;
  std::vector<DeviceGrant> devices;
  IndexSet cpus;        ///< exclusive CPUs
  NumaMask memory = 0;  ///< nodes the memory is pinned to
};

/// One way kubelet's run may end.
struct Outcome {
  bool admit = false;
  Reason reason = Reason::kNone;
  std::string message;              ///< kubelet's text
  std::vector<Shortage> shortages;  ///< why, when the reason is TopologyAffinityError
  std::string why;                  ///< the same as one line for a person
  /// In kubelet's order, up to the container at which it stopped.
  std::vector<ContainerOutcome> containers;
};

/// Where kubelet's choice of devices is open (Go-set order, no plugin preference) and matters for what follows, there
/// are several outcomes.
struct Admission {
  bool admit = false;             ///< in every outcome
  bool certain = true;            ///< all outcomes agree on `admit`, and all of them are listed
  bool complete = true;           ///< false: there are more outcomes than were looked at; then `admit` is false
  std::vector<Outcome> outcomes;  ///< at least one
};

}  // namespace mortise::topology
