#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "scheduler/placement/policy.h"
#include "tests/support/reference_engine.h"

namespace mortise::property {

/// Every row of the policy table, and spellings with options.
inline std::vector<std::string> spellings() {
  std::vector<std::string> all;
  for (const placement::PolicyInfo& row : placement::policy_table()) all.emplace_back(row.name);
  for (const char* options : {"tie=random", "tie=best-fit", "step=80", "step=1", "tie=best-fit:step=80"}) {
    all.push_back(std::string("fgd:") + options);
  }
  return all;
}

/// Those the reference engine has, too.
inline std::vector<std::string> reference_spellings() {
  std::vector<std::string> known = spellings();
  std::erase_if(known, [](const std::string& spelling) { return !reference::parse_rules(spelling); });
  return known;
}

/// A spelling as the name of a test case.
inline std::string case_name(std::string spelling) {
  std::replace_if(
      spelling.begin(), spelling.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return spelling;
}

}  // namespace mortise::property
