#pragma once

#include "traces/synth.h"

namespace mortise::traces {

extern const SynthProfile kOpenbLike;

}  // namespace mortise::traces
