# mortise_test(NAME base LABEL unit SOURCES a_test.cpp DEPS mortise::base): one executable, one ctest entry per case.
# Labels: unit, property, golden (reads ../shared when present), concurrency.
function(mortise_test)
  cmake_parse_arguments(ARG "" "NAME;LABEL" "SOURCES;DEPS" ${ARGN})
  set(target ${ARG_NAME}_${ARG_LABEL}_test)
  add_executable(${target} ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE
    mortise_flags mortise_test_tree ${ARG_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  if(ARG_LABEL STREQUAL "property")
    target_link_libraries(${target} PRIVATE rapidcheck)
  else()
    # What is tested keeps its own level. Most of the time of a build would go into optimising expectations.
    target_compile_options(${target} PRIVATE -O0)
  endif()
  add_test(NAME ${target} COMMAND ${target})
  set_tests_properties(${target} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT 900)
endfunction()

# mortise_fuzz(NAME wire SOURCES wire_fuzz.cpp DEPS mortise::extender): fuzz_<name>. Without MORTISE_FUZZ the same source
# gets a plain main() that replays the files it is given, so targets never rot; the saved corpus
# (tests/fuzz/corpus/<name>) is replayed by ctest.
function(mortise_fuzz)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;DEPS" ${ARGN})
  set(target fuzz_${ARG_NAME})
  add_executable(${target} ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE mortise_flags ${ARG_DEPS})
  if(MORTISE_FUZZ)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests/fuzz/replay_main.cpp)
    add_test(NAME ${target} COMMAND ${target} ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${ARG_NAME})
    set_tests_properties(${target} PROPERTIES LABELS unit TIMEOUT 300)
  endif()
endfunction()
