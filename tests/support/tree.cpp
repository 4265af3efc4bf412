#include "tests/support/tree.h"

namespace mortise::test {

std::string source_dir() {
  return MORTISE_SOURCE_DIR;
}
std::string binary_dir() {
  return MORTISE_BINARY_DIR;
}

}  // namespace mortise::test
