# Writes OUTPUT, a source file with a digest of the code that decides a simulation's result: the files FILES (joined by
# commas, relative to SOURCE) and every header of ours that they include. Sources are hashed and not the program, so the
# digest is the same on every machine. OUTPUT is left alone when nothing changed.
cmake_minimum_required(VERSION 3.25)
string(REPLACE "," ";" pending "${FILES}")
set(seen "")
while(pending)
  list(POP_FRONT pending name)
  if(name IN_LIST seen)
    continue()
  endif()
  list(APPEND seen "${name}")
  file(STRINGS "${SOURCE}/${name}" includes REGEX "^#include \"")
  foreach(line IN LISTS includes)
    string(REGEX REPLACE "^#include \"([^\"]*)\".*" "\\1" header "${line}")
    list(APPEND pending "${header}")
  endforeach()
endwhile()

list(SORT seen)
set(text "")
foreach(name IN LISTS seen)
  file(SHA256 "${SOURCE}/${name}" digest)
  string(APPEND text "${name} ${digest}\n")
endforeach()
string(SHA256 digest "${text}")
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT [[
#include "sim/source_digest.h"

namespace mortise::sim {

std::string_view source_digest() { return "@digest@"; }

}  // namespace mortise::sim
]] @ONLY)
