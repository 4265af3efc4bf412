#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "scheduler/extender/gang_slot.h"

namespace {

using namespace mortise;

// Messages become part of one line.
void check_message(const std::string& message) {
  if (message.empty() || message.find('\n') != std::string::npos) std::abort();
}

}  // namespace

// The annotation of a pod, or the text of a ConfigMap: read or refused with one line, and what is read is written again
// byte for byte.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto plan = extender::parse_plan(text);
  if (plan.ok()) {
    if (plan->slots() == 0 || plan->slots() > extender::kMaxStoredSlots) std::abort();
    const auto again = extender::plan_text(*plan);
    if (!again.ok() || *again != text) std::abort();
  } else {
    check_message(plan.message());
  }
  const auto slot = extender::parse_slot(text);
  if (!slot.ok()) {
    check_message(slot.message());
    return 0;
  }
  if (slot->all.has_value() != slot->ns.empty()) std::abort();
  const auto again = extender::slot_text(*slot);
  if (!again.ok()) return 0;  // shorter as it came: escapes of the role
  const auto twice = extender::parse_slot(*again);
  if (!twice.ok() || twice->plan != slot->plan || twice->all != slot->all || twice->role != slot->role) std::abort();
  return 0;
}
