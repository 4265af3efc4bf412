// Gangs through all that may happen to them, in any order: members come late, ask, are bound or not, fail, end and come
// again, places run out, pods are evicted for them, nodes leave, the extender starts anew. After every step the world
// that the test keeps beside them must be one that is allowed. MORTISE_GANG_STEPS sets the number of steps.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/unit/extender/gang_world.h"

namespace mortise::extender {
namespace {

constexpr int kStepsPerWorld = 500;

TEST(GangLife, WhateverHappensTheInvariantsHold) {
  const char* asked = std::getenv("MORTISE_GANG_STEPS");
  const long steps = asked != nullptr ? std::atol(asked) : 50'000;
  int preempted = 0;
  for (long done = 0; done < steps; done += kStepsPerWorld) {
    SCOPED_TRACE("world " + std::to_string(done / kStepsPerWorld));
    World world(static_cast<std::uint64_t>(done / kStepsPerWorld) + 1);
    for (int i = 0; i < kStepsPerWorld && !testing::Test::HasFatalFailure(); ++i) {
      SCOPED_TRACE("step " + std::to_string(i));
      world.step();
      world.check();
    }
    if (testing::Test::HasFatalFailure()) return;
    preempted += world.preempted();
  }
  EXPECT_GT(preempted, steps / 5000);
}

}  // namespace
}  // namespace mortise::extender
