#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "scheduler/base/quantity.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parsed = mortise::Quantity::parse({reinterpret_cast<const char*>(data), size});
  if (!parsed.ok()) return 0;
  const auto whole = parsed->whole();
  if (whole.ok() && *whole != parsed->rounded_up()) std::abort();
  if (parsed->negative() && parsed->milli_rounded_up() >= 0) std::abort();
  return 0;
}
