#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/kube/objects/field.h"
#include "scheduler/kube/objects/gang_objects.h"

namespace mortise::kube {

/// Each reads one kind of group object from its root. A rule of the kind that is broken goes into `object.invalid`;
/// values of a wrong type are noted by the fields themselves.
void decode_native_pod_group(const Field& root, GroupObject& object);
void decode_workload(const Field& root, GroupObject& object);
void decode_pod_group(const Field& root, GroupObject& object);
void decode_volcano_pod_group(const Field& root, GroupObject& object);
void decode_kai_pod_group(const Field& root, GroupObject& object);
void decode_kubeflow_job(const Field& root, GroupObject& object);
void decode_job_set(const Field& root, GroupObject& object);
void decode_job(const Field& root, GroupObject& object);
void decode_leader_worker_set(const Field& root, GroupObject& object);
void decode_ray_cluster(const Field& root, GroupObject& object);
void decode_priority_class(const Field& root, GroupObject& object);

/// Adds up to one more than kMaxGangMembers, so that no sum overflows and too many can be told.
std::int32_t add_members(std::int32_t a, std::int32_t b);

/// A count of members as an annotation or label has it; `where` is the start of the message.
Result<std::int32_t> parse_members(const std::string& where, std::string_view text);

/// The annotation gang.scheduling.koordinator.sh/groups: a JSON list of NAMESPACE/NAME, here sorted and without
/// repeats.
Result<std::vector<std::string>> parse_gang_list(const std::string& where, std::string_view text);

}  // namespace mortise::kube
