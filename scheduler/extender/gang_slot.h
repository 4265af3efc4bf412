#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/placement/device_set.h"

namespace mortise::extender {

/// Pod annotation: which of the places that were decided together for its gang the pod has. Its Binding writes it.
inline constexpr std::string_view kGangSlotAnnotation = "mortise.dev/gang-slot";
inline constexpr std::size_t kMaxSlotBytes = 512;
/// Larger plans, and those that kMaxSlotBytes do not hold, are in a ConfigMap.
inline constexpr std::size_t kMaxInlineSlots = 16;
inline constexpr std::size_t kMaxStoredSlots = 16'384;
inline constexpr std::size_t kMaxPlanBytes = 900 * 1024;  ///< of a ConfigMap's 1 MiB

/// The place of one member.
struct StoredSlot {
  std::string tag;  ///< uid_tag() of the member
  std::string node;
  placement::DeviceSet devices;

  friend bool operator==(const StoredSlot&, const StoredSlot&) = default;
};

/// The places that were decided together for members of a gang: all that nobody was bound to at that time.
struct StoredPlan {
  std::uint64_t revision = 0;                            ///< a later plan of the gang has a larger one
  std::map<std::string, std::vector<StoredSlot>> roles;  ///< by name of the role; a slot is known by its index there

  std::size_t slots() const;
  /// Null: there is no such slot.
  const StoredSlot* find(const std::string& role, std::size_t index) const;

  friend bool operator==(const StoredPlan&, const StoredPlan&) = default;
};

/// Six characters that stand for a UID where there is no room for 36. Two members that have the same one may get each
/// other's place.
std::string uid_tag(std::string_view uid);
/// The first `digits` hexadecimal digits of the text's SHA-256; at most 64.
std::string text_digest(std::string_view text, std::size_t digits);
/// What stands for a gang in annotations and labels.
std::string gang_digest(std::string_view gang_key);
/// The plan's name: nobody can make another text with the same one.
std::string plan_digest(std::string_view gang_key, std::string_view plan_text);

/// `{"v":1,"rev":2,"at":"gpu-*","roles":{"worker":"01:f.k3jd9a+f0.x_2Qaz,02:ff.0dk3ls"}}`: node, then for each member
/// on it its devices as a hexadecimal mask and its tag. `at` is what all nodes' names have in common. An error: no
/// slots, too many bytes, or names that no API server would take.
Result<std::string> plan_text(const StoredPlan& plan);
/// Takes what plan_text() writes, and nothing else.
Result<StoredPlan> parse_plan(std::string_view text);

/// The value of the annotation.
struct GangSlot {
  std::string gang;  ///< gang_digest()
  std::string role;
  std::size_t index = 0;
  std::string plan;               ///< plan_digest()
  std::optional<StoredPlan> all;  ///< the whole plan; none: it is in the ConfigMap
  std::string ns;                 ///< of the ConfigMap; empty: there is none
};

/// `{"gang":"...","role":"worker","index":3,"plan":"...","all":{...}}`, or "in" with the namespace of the ConfigMap
/// instead of "all".
Result<std::string> slot_text(const GangSlot& slot);
Result<GangSlot> parse_slot(std::string_view text);

/// The ConfigMap of a plan.
std::string plan_map_name(std::string_view plan_digest);
inline constexpr std::string_view kPlanKey = "plan";  ///< in its data
inline constexpr std::string_view kPlanLabel = "mortise.dev/gang-plan";

}  // namespace mortise::extender
