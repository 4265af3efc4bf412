#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <sstream>
#include <utility>

namespace mortise::support {

/// Runs the property on `cases` drawn inputs; a failure shows the smallest input found that breaks it. The draws are
/// the same on every run; RC_PARAMS="seed=N max_success=N" explores others.
template <class Property>
void for_all(int cases, Property&& property) {
  rc::detail::TestParams params;
  if (std::getenv("RC_PARAMS") != nullptr) {
    params = rc::detail::configuration().testParams;
  } else {
    params.seed = 20230710;
    params.maxSuccess = cases;
  }
  const auto result = rc::detail::checkTestable(std::forward<Property>(property), rc::detail::TestMetadata{}, params);
  if (result.template is<rc::detail::SuccessResult>()) return;
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  FAIL() << text.str();
}

}  // namespace mortise::support
