// Any bytes as a case of `mortise admit`: an answer that is JSON, or one line that says what is wrong.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "scheduler/topology/admit_cases.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static mortise::topology::AdmitCases cases;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto answer = cases.answer(text);
  const std::string& shown = answer ? *answer : answer.message();
  if (shown.empty() || shown.find('\n') != std::string::npos) std::abort();
  if (answer && !nlohmann::json::accept(*answer)) std::abort();
  return 0;
}
