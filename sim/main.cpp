#include "sim/verbs.h"

int main(int argc, char** argv) {
  return mortise::sim::run_command_line(argc, argv);
}
