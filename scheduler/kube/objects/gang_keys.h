#pragma once

namespace mortise::kube::keys {

// Labels and annotations that more than one file reads.
inline constexpr const char* kKoordinatorTotal = "gang.scheduling.koordinator.sh/total-number";
inline constexpr const char* kKoordinatorGroups = "gang.scheduling.koordinator.sh/groups";
inline constexpr const char* kLwsExclusive = "leaderworkerset.sigs.k8s.io/exclusive-topology";
inline constexpr const char* kRayGang = "ray.io/gang-scheduling-enabled";

}  // namespace mortise::kube::keys
