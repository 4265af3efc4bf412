# One place for compiler flags. `mortise_flags` is linked by every target of ours and by nothing else.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})

add_library(mortise_flags INTERFACE)
target_include_directories(mortise_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(mortise_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
  # Published scores are floating point evaluated in a fixed order; a fused multiply-add would change the last bit.
  -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 sees overlaps that are not there in string concatenation (its bug 105651).
  target_compile_options(mortise_flags INTERFACE -Wno-restrict)
endif()
if(MORTISE_WERROR)
  target_compile_options(mortise_flags INTERFACE -Werror)
endif()
if(MORTISE_SANITIZE)
  target_compile_options(mortise_flags INTERFACE
    -fsanitize=${MORTISE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(mortise_flags INTERFACE -fsanitize=${MORTISE_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC's optimiser reports false overflows and uninitialised values in instrumented code.
    target_compile_options(mortise_flags INTERFACE -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-array-bounds)
  endif()
endif()
if(MORTISE_FUZZ)
  target_compile_options(mortise_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
