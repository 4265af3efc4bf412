#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <sstream>
#include <utility>

namespace mortise::test {

/// Says nothing: gtest reports the outcome.
class QuietListener final : public rc::detail::TestListener {
 public:
  void onTestCaseFinished(const rc::detail::CaseDescription&) override {}
  void onShrinkTried(const rc::detail::CaseDescription&, bool) override {}
  void onTestFinished(const rc::detail::TestMetadata&, const rc::detail::TestResult&) override {}
};

/// Runs the property on `cases` drawn inputs; a failure shows the smallest input found that breaks it. The draws are
/// the same on every run; RC_PARAMS="seed=N max_success=N" explores others.
template <class Property>
void for_all(int cases, Property&& property) {
  // Filled from RC_PARAMS only when that is set: loading it announces a seed that would not be the one used.
  rc::detail::Configuration configuration;
  if (std::getenv("RC_PARAMS") != nullptr) {
    configuration = rc::detail::configuration();
  } else {
    configuration.testParams.seed = 20230710;
    configuration.testParams.maxSuccess = cases;
  }
  QuietListener quiet;
  const auto result = rc::detail::checkTestable(std::forward<Property>(property), rc::detail::TestMetadata{},
                                                configuration.testParams, quiet, configuration.reproduce);
  if (result.template is<rc::detail::SuccessResult>()) return;
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  FAIL() << text.str();
}

}  // namespace mortise::test
