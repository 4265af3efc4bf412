#pragma once

#include <string>

namespace mortise::test {

/// The root of this repository and the folder it was built in, absolute. One source knows them, so that what a compiler
/// cache keeps of the others is of use to a checkout elsewhere.
std::string source_dir();
std::string binary_dir();

}  // namespace mortise::test
