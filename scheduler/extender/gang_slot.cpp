#include "scheduler/extender/gang_slot.h"

#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "scheduler/base/quote.h"
#include "scheduler/base/rng.h"

namespace mortise::extender {
namespace {

using nlohmann::ordered_json;
using placement::DeviceSet;

constexpr int kVersion = 1;
constexpr std::size_t kTagLength = 6;
constexpr std::size_t kPlanDigits = 32;
constexpr std::size_t kGangDigits = 16;
constexpr std::size_t kMaxNodeName = 253;  // RFC 1123 subdomains
constexpr std::size_t kMaxRevision = std::size_t{1} << 53;
constexpr std::string_view kTagAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::string_view kHex = "0123456789abcdef";
constexpr std::string_view kNameCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-.";

bool consists_of(std::string_view text, std::string_view characters) {
  return text.find_first_not_of(characters) == std::string_view::npos;
}

bool is_digest(std::string_view text, std::size_t digits) {
  return text.size() == digits && consists_of(text, kHex);
}

/// The lowest device is the lowest bit.
std::string mask_text(const DeviceSet& devices) {
  std::array<unsigned, placement::kMaxDevices / 4> digits{};
  std::size_t used = 1;
  devices.for_each([&](int device) {
    const auto digit = static_cast<std::size_t>(device) / 4;
    digits[digit] |= 1U << (static_cast<unsigned>(device) % 4);
    used = std::max(used, digit + 1);
  });
  std::string text;
  for (std::size_t i = used; i-- > 0;) text += kHex[digits[i]];
  return text;
}

std::optional<DeviceSet> parse_mask(std::string_view text) {
  if (text.empty() || text.size() > placement::kMaxDevices / 4 || !consists_of(text, kHex)) return std::nullopt;
  DeviceSet devices;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t digit = kHex.find(text[text.size() - 1 - i]);
    for (std::size_t bit = 0; bit < 4; ++bit) {
      if ((digit >> bit & 1) != 0) devices.insert(static_cast<int>(4 * i + bit));
    }
  }
  return devices;
}

/// What all names begin and end with; what is between must not overlap.
struct Common {
  std::string prefix;
  std::string suffix;

  std::string_view middle(std::string_view name) const {
    return name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  }
};

Common common_of(const StoredPlan& plan) {
  Common common;
  bool first = true;
  std::size_t shortest = 0;
  for (const auto& [role, slots] : plan.roles) {
    for (const StoredSlot& slot : slots) {
      const std::string& name = slot.node;
      if (std::exchange(first, false)) {
        common.prefix = common.suffix = name;
        shortest = name.size();
        continue;
      }
      shortest = std::min(shortest, name.size());
      const auto ahead = std::mismatch(common.prefix.begin(), common.prefix.end(), name.begin(), name.end());
      common.prefix.erase(ahead.first, common.prefix.end());
      const auto behind = std::mismatch(common.suffix.rbegin(), common.suffix.rend(), name.rbegin(), name.rend());
      common.suffix.erase(0, common.suffix.size() - static_cast<std::size_t>(behind.first - common.suffix.rbegin()));
    }
  }
  if (common.suffix.size() > shortest - common.prefix.size()) {
    common.suffix.erase(0, common.suffix.size() - (shortest - common.prefix.size()));
  }
  return common;
}

std::string role_text(const std::vector<StoredSlot>& slots, const Common& common) {
  std::string text;
  const std::string* node = nullptr;
  for (const StoredSlot& slot : slots) {
    const bool same = node != nullptr && *node == slot.node;
    if (!same) text += (text.empty() ? "" : ",") + std::string(common.middle(slot.node)) + ":";
    if (same) text += "+";
    text += mask_text(slot.devices) + "." + slot.tag;
    node = &slot.node;
  }
  return text;
}

Status check_slot(const StoredSlot& slot) {
  if (slot.node.empty() || slot.node.size() > kMaxNodeName || !consists_of(slot.node, kNameCharacters)) {
    return Error{"node " + quote(slot.node) + " has no name that a plan can hold"};
  }
  if (slot.tag.size() != kTagLength || !consists_of(slot.tag, kTagAlphabet)) {
    return Error{"tag " + quote(slot.tag) + " is not 6 letters, digits, - or _"};
  }
  return ok_status();
}

/// Calls f(part) for each part between separators.
template <class F>
Status for_each_part(std::string_view text, char separator, F&& f) {
  for (;;) {
    const std::size_t end = text.find(separator);
    const Status done = f(text.substr(0, end));
    if (!done.ok() || end == std::string_view::npos) return done;
    text.remove_prefix(end + 1);
  }
}

Status parse_role(std::string_view text, const Common& common, std::vector<StoredSlot>& slots) {
  return for_each_part(text, ',', [&](std::string_view group) -> Status {
    const std::size_t colon = group.find(':');
    if (colon == std::string_view::npos) return Error{"members without a node: " + quote(group)};
    const std::string node = common.prefix + std::string(group.substr(0, colon)) + common.suffix;
    return for_each_part(group.substr(colon + 1), '+', [&](std::string_view member) -> Status {
      const std::size_t dot = member.find('.');
      const auto devices = parse_mask(member.substr(0, dot));
      if (dot == std::string_view::npos || !devices) return Error{"not DEVICES.TAG: " + quote(member)};
      StoredSlot slot{std::string(member.substr(dot + 1)), node, *devices};
      if (const Status good = check_slot(slot); !good.ok()) return good;
      slots.push_back(std::move(slot));
      return ok_status();
    });
  });
}

/// No document at all when it is not JSON.
ordered_json read_json(std::string_view text) {
  return ordered_json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

std::string dump(const ordered_json& document) {
  return document.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string text_member(const ordered_json& document, const char* key) {
  const auto found = document.find(key);
  return found != document.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<std::size_t> whole_member(const ordered_json& document, const char* key, std::size_t most) {
  const auto found = document.find(key);
  if (found == document.end() || !found->is_number_unsigned()) return std::nullopt;
  const auto value = found->get<std::uint64_t>();
  return value <= most ? std::optional<std::size_t>(value) : std::nullopt;
}

}  // namespace

std::size_t StoredPlan::slots() const {
  std::size_t count = 0;
  for (const auto& [role, of_role] : roles) count += of_role.size();
  return count;
}

const StoredSlot* StoredPlan::find(const std::string& role, std::size_t index) const {
  const auto found = roles.find(role);
  return found == roles.end() || index >= found->second.size() ? nullptr : &found->second[index];
}

std::string uid_tag(std::string_view uid) {
  std::uint64_t bits = hash_text(uid);
  std::string tag;
  for (std::size_t i = 0; i < kTagLength; ++i, bits >>= 6) tag += kTagAlphabet[bits % 64];
  return tag;
}

std::string text_digest(std::string_view text, std::size_t digits) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> bytes{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), bytes.data());
  std::string hex;
  for (const unsigned char byte : bytes) {
    hex += kHex[byte / 16];
    hex += kHex[byte % 16];
  }
  return hex.substr(0, digits);
}

std::string gang_digest(std::string_view gang_key) {
  return text_digest(gang_key, kGangDigits);
}

std::string plan_digest(std::string_view gang_key, std::string_view plan_text) {
  return text_digest(std::string(gang_key) + '\n' + std::string(plan_text), kPlanDigits);
}

std::string plan_map_name(std::string_view plan_digest) {
  return "mortise-gang-" + std::string(plan_digest);
}

Result<std::string> plan_text(const StoredPlan& plan) {
  if (plan.slots() == 0 || plan.slots() > kMaxStoredSlots) return Error{"a plan has 1 to 16384 slots"};
  if (plan.revision > kMaxRevision) return Error{"no such revision of a plan"};
  ordered_json roles = ordered_json::object();
  const Common common = common_of(plan);
  for (const auto& [role, slots] : plan.roles) {
    if (slots.empty()) return Error{"role " + quote(role) + " has no slots"};
    for (const StoredSlot& slot : slots) {
      if (const Status good = check_slot(slot); !good.ok()) return good.error();
    }
    roles[role] = role_text(slots, common);
  }
  std::string text = dump({{"v", kVersion},
                           {"rev", plan.revision},
                           {"at", common.prefix + "*" + common.suffix},
                           {"roles", std::move(roles)}});
  if (text.size() > kMaxPlanBytes) return Error{"a plan of " + std::to_string(text.size()) + " bytes is too large"};
  return text;
}

Result<StoredPlan> parse_plan(std::string_view text) {
  if (text.size() > kMaxPlanBytes) return Error{"the plan is too large"};
  const ordered_json document = read_json(text);
  if (!document.is_object()) return Error{"the plan is not a JSON object"};
  if (whole_member(document, "v", kVersion) != kVersion) return Error{"the plan is not of version 1"};
  const auto revision = whole_member(document, "rev", kMaxRevision);
  const std::string at = text_member(document, "at");
  const std::size_t star = at.find('*');
  const auto roles = document.find("roles");
  if (!revision || star == std::string::npos || roles == document.end() || !roles->is_object()) {
    return Error{"the plan lacks rev, at or roles"};
  }
  StoredPlan plan;
  plan.revision = *revision;
  const Common common{at.substr(0, star), at.substr(star + 1)};
  for (const auto& [role, members] : roles->items()) {
    if (!members.is_string()) return Error{"role " + quote(role) + " of the plan is no text"};
    if (const Status read = parse_role(members.get<std::string>(), common, plan.roles[role]); !read.ok()) {
      return Error{"role " + quote(role) + " of the plan: " + read.message()};
    }
  }
  // One way to write each plan: what is read has the digest of what was written.
  const Result<std::string> again = plan_text(plan);
  if (!again.ok()) return again.error();
  if (*again != text) return Error{"the plan is not written as plans are"};
  return plan;
}

Result<std::string> slot_text(const GangSlot& slot) {
  ordered_json document = {{"gang", slot.gang}, {"role", slot.role}, {"index", slot.index}, {"plan", slot.plan}};
  if (slot.all) {
    const Result<std::string> all = plan_text(*slot.all);
    if (!all.ok()) return all.error();
    document["all"] = read_json(*all);
  } else {
    document["in"] = slot.ns;
  }
  std::string text = dump(document);
  if (text.size() > kMaxSlotBytes) return Error{"a slot of " + std::to_string(text.size()) + " bytes is too large"};
  return text;
}

Result<GangSlot> parse_slot(std::string_view text) {
  if (text.size() > kMaxSlotBytes) return Error{"the slot has more than 512 bytes"};
  const ordered_json document = read_json(text);
  if (!document.is_object()) return Error{"the slot is not a JSON object"};
  GangSlot slot;
  slot.gang = text_member(document, "gang");
  slot.plan = text_member(document, "plan");
  slot.role = text_member(document, "role");
  const auto index = whole_member(document, "index", kMaxStoredSlots);
  if (!is_digest(slot.gang, kGangDigits) || !is_digest(slot.plan, kPlanDigits) || !index) {
    return Error{"the slot lacks gang, plan or index"};
  }
  slot.index = *index;
  if (const auto all = document.find("all"); all != document.end()) {
    Result<StoredPlan> plan = parse_plan(dump(*all));
    if (!plan.ok()) return plan.error();
    slot.all = *std::move(plan);
    return slot;
  }
  slot.ns = text_member(document, "in");
  if (slot.ns.empty()) return Error{"the slot has no plan, and does not say where it is"};
  return slot;
}

}  // namespace mortise::extender
