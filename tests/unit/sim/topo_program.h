#pragma once

#include "tests/unit/sim/program.h"

namespace mortise::sim {

class TopoProgram : public Program {
 protected:
  static Ran run(const std::vector<std::string>& arguments) { return run_program({"topo"}, arguments); }
};

}  // namespace mortise::sim
