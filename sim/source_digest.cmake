# Writes OUTPUT, a header with a digest of the code that decides a simulation's result: the folders FOLDERS (joined by
# commas) below SOURCE. It is part of the key of stored runs, so that a changed policy is never answered with old
# results. Taken from the sources and not from the program, it is the same on every machine. The header is left alone
# when nothing changed.
string(REPLACE "," ";" folders "${FOLDERS}")
set(text "")
foreach(folder IN LISTS folders)
  file(GLOB files RELATIVE "${SOURCE}" "${SOURCE}/${folder}/*.h" "${SOURCE}/${folder}/*.cpp")
  if(NOT files)
    message(FATAL_ERROR "no sources in ${SOURCE}/${folder}")
  endif()
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
