# Writes OUTPUT, a header with a digest of the code that decides a simulation's result: the folders in FOLDERS below
# SOURCE. It is part of the key of stored runs, so that a changed policy is never answered with old results. Taken from
# the sources and not from the program, it is the same on every machine. The header is left alone when nothing changed.
set(text "")
foreach(folder IN LISTS FOLDERS)
  file(GLOB files RELATIVE "${SOURCE}" "${SOURCE}/${folder}/*.h" "${SOURCE}/${folder}/*.cpp")
  list(SORT files)
  foreach(name IN LISTS files)
    file(SHA256 "${SOURCE}/${name}" digest)
    string(APPEND text "${name} ${digest}\n")
  endforeach()
endforeach()
string(SHA256 digest "${text}")
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT [[
#pragma once

namespace mortise::sim {
inline constexpr const char* kSourceDigest = "@digest@";
}  // namespace mortise::sim
]] @ONLY)
