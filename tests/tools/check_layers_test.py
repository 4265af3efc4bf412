"""Plants one violation at a time in a small tree and expects check_layers to name it; a clean tree must pass."""
import os
import sys
import tempfile
import unittest

SOURCE_DIR = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE_DIR, "tools"))
sys.dont_write_bytecode = True
import check_layers  # noqa: E402  (found through the line above)

CLEAN = {
    "scheduler/base/CMakeLists.txt": "mortise_library(NAME base LAYER 0 SOURCES units.cpp)  # a comment (with a bracket\n",
    "scheduler/base/units.h": "#pragma once\n#include <cstdint>\n",
    "scheduler/base/units.cpp": '#include "scheduler/base/units.h"\n',
    "scheduler/placement/CMakeLists.txt": "mortise_library(NAME placement LAYER 2\n  SOURCES\n    plan.cpp\n    sub/policy.cpp)\n",
    "scheduler/placement/plan.h": '#pragma once\n#include "scheduler/base/units.h"\n',
    "scheduler/placement/plan.cpp": '#include "scheduler/placement/plan.h"\n#include <vector>\n',
    "scheduler/placement/sub/policy.cpp": '#include "scheduler/placement/plan.h"\n',
    "scheduler/extender/CMakeLists.txt": "mortise_library(NAME extender LAYER 5 SOURCES wire.cpp)\n",
    "scheduler/extender/wire.h": "#pragma once\n",
    "scheduler/extender/wire.cpp": '#include <simdjson.h>\n#include "scheduler/placement/plan.h"\n',
    "sim/CMakeLists.txt": "mortise_library(NAME sim LAYER 5 SOURCES replay.cpp)\nadd_executable(mortise main.cpp)\n",
    "sim/replay.h": "#pragma once\n#include <nlohmann/json_fwd.hpp>\n",
    "sim/replay.cpp": '#include "sim/replay.h"\n#include <chrono>\n',
    "sim/main.cpp": '#include "sim/replay.h"\n',
}


def body(lines, head="int f() {", tail="}\n"):
    """A function of exactly `lines` lines."""
    return head + "\n" + "  step();\n" * (lines - 2) + tail


class CheckLayersTest(unittest.TestCase):
    def violations(self, changes=None, removed=()):
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**CLEAN, **(changes or {})}.items():
                if path in removed:
                    continue
                full = os.path.join(root, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "w", encoding="utf-8") as file:
                    file.write(text)
            return check_layers.check(root)[1]

    def expect_one(self, changes, *words, removed=()):
        found = self.violations(changes, removed)
        self.assertEqual(len(found), 1, found)
        for word in words:
            self.assertIn(word, found[0])

    def plan_with(self, include):
        return {"scheduler/placement/plan.cpp": f"// first line\n#include {include}\n"}

    def test_clean_tree_passes(self):
        self.assertEqual(self.violations(), [])

    def test_lower_layer_may_not_include_higher(self):
        self.expect_one({"scheduler/base/units.cpp": '\n#include "scheduler/placement/plan.h"\n'},
                        "scheduler/base/units.cpp:2:", "layer 0", "layer 2")

    def test_hosts_may_not_include_each_other(self):
        self.expect_one({"sim/main.cpp": '#include "scheduler/extender/wire.h"\n'}, "sim/main.cpp:1:", "layer 5")
        self.expect_one({"scheduler/extender/wire.cpp": '#include "sim/replay.h"\n'}, "wire.cpp:1:", "layer 5")

    def test_tests_sit_on_top(self):
        self.expect_one({"tests/support/data.h": "#pragma once\n",
                         "sim/main.cpp": '#include "tests/support/data.h"\n'}, "layer 6")

    def test_indented_and_spaced_includes_are_seen(self):
        self.expect_one({"scheduler/base/units.cpp": ' #  include   "scheduler/placement/plan.h"\n'}, "layer 2")

    def test_include_must_be_relative_to_the_root(self):
        self.expect_one(self.plan_with('"plan.h"'), "plan.cpp:2:", "not a file")

    def test_generated_header_must_be_a_byproduct_of_the_build(self):
        include = {"sim/replay.cpp": '#include "sim/version.h"\n'}
        self.expect_one(include, "sim/version.h", "not a file")
        rule = 'add_custom_target(version COMMAND x BYPRODUCTS "${generated}/sim/version.h")\n'
        self.assertEqual(self.violations({**include, "sim/CMakeLists.txt": CLEAN["sim/CMakeLists.txt"] + rule}), [])

    def test_folder_without_layer_is_named(self):
        self.expect_one({"scheduler/new/thing.h": "#pragma once\n"}, "scheduler/new/thing.h", "no layer")

    def test_placement_is_free_of_io_threads_clocks_and_json(self):
        for header in ("thread", "mutex", "fstream", "iostream", "chrono", "filesystem", "nlohmann/json.hpp",
                       "simdjson.h", "httplib.h", "fmt/format.h", "spdlog/spdlog.h", "condition_variable"):
            with self.subTest(header):
                self.expect_one(self.plan_with(f"<{header}>"), "plan.cpp:2:", header, "placement")

    def test_heavy_headers_stay_in_cpp_files(self):
        for header in ("boost/graph/adjacency_list.hpp", "httplib.h", "nlohmann/json.hpp", "simdjson.h",
                       "yaml-cpp/yaml.h", "CLI/CLI.hpp", "prometheus/counter.h"):
            with self.subTest(header):
                self.expect_one({"sim/replay.h": f"#pragma once\n#include <{header}>\n"}, "replay.h:2:", header)
                self.assertEqual(self.violations({"sim/replay.cpp": f"#include <{header}>\n"}), [])

    def test_listed_source_must_exist(self):
        self.expect_one({}, "sim/replay.cpp is listed", removed=("sim/replay.cpp",))

    def test_source_must_be_listed(self):
        self.expect_one({"sim/lost.cpp": ""}, "sim/lost.cpp", "never built")

    def test_source_listed_in_another_folder_only_does_not_count(self):
        self.expect_one({"sim/wire.cpp": ""}, "sim/wire.cpp", "never built")

    def test_layer_in_cmake_must_agree(self):
        self.expect_one({"sim/CMakeLists.txt": CLEAN["sim/CMakeLists.txt"].replace("LAYER 5", "LAYER 4")},
                        "sim/CMakeLists.txt:1:", "layer 5")

    def test_globbing_and_variables_are_refused(self):
        self.expect_one({"bench/CMakeLists.txt": "file(GLOB sources *.cc)\n"}, "bench/CMakeLists.txt:1:", "GLOB")
        self.expect_one({"bench/CMakeLists.txt": "\nadd_executable(b ${name}.cpp)\n"},
                        "bench/CMakeLists.txt:2:", "no variables")

    def test_file_length(self):
        self.assertEqual(self.violations({"sim/main.cpp": "int x;\n" * 500}), [])
        self.expect_one({"sim/main.cpp": "int x;\n" * 501}, "sim/main.cpp:501:", "501 lines")

    def test_function_length(self):
        self.assertEqual(self.violations({"sim/main.cpp": body(60)}), [])
        self.expect_one({"sim/main.cpp": "int x;\n" + body(61)}, "sim/main.cpp:2:", "f has 61 lines")

    def test_long_functions_are_found_wherever_they_stand(self):
        heads = {
            "template": "template <class T, class U = std::vector<T>>\nResult<T> f(const U& u) {",
            "constructor": "Thing::Thing(int a) : a_(a), b_{a} {",
            "operator": "bool operator==(const A& a, const B& b) {",
            "arguments on several lines": "void f(int a,\n       int b) {",
            "gtest case": "TEST(Plan, PicksTheBest) {",
            "trailing return": "auto f() -> std::vector<int> {",
            "struct as return type": "struct Foo make(int a) {",
        }
        for name, head in heads.items():
            with self.subTest(name):
                text = body(62 - head.count("\n"), head)
                wrapped = "namespace mortise {\nnamespace {\n" + text + "}  // namespace\n}  // namespace mortise\n"
                self.expect_one({"sim/main.cpp": wrapped}, "in a function")
        method = body(70, "  int f() const override {", "  }\n")
        self.expect_one({"sim/main.cpp": "class A final : public B {\n public:\n" + method + "};\n"},
                        "sim/main.cpp:3:", "f has 70 lines")
        self.expect_one({"sim/main.cpp": body(70, "constexpr Row kRows[] = {{1, [](int a) {", "}}};\n")}, "lines")

    def test_inner_blocks_and_lambdas_belong_to_their_function(self):
        inner = "  if (x) {\n" + "    step();\n" * 30 + "  }\n" + "  auto g = [&](int a) {\n" + "    s();\n" * 30 + "  };\n"
        self.expect_one({"sim/main.cpp": "void f() {\n" + inner + "}\n"}, "sim/main.cpp:1:", "f has 66 lines")

    def test_long_tables_types_and_namespaces_are_no_functions(self):
        rows = '    {"name", 1},\n' * 100
        for head, tail in (("constexpr Row kRows[] = {", "};\n"), ("const std::map<int, int> kMap{", "};\n"),
                           ("struct Big : public Base<int> {", "};\n"), ("enum class Kind : std::uint8_t {", "};\n"),
                           ("class [[nodiscard]] Big {", "};\n"), ("namespace a::b {", "}\n")):
            with self.subTest(head):
                text = head + "\n" + (rows if "k" in head else "  int x;\n" * 100) + tail
                self.assertEqual(self.violations({"sim/main.cpp": text}), [])

    def test_braces_in_literals_and_comments_do_not_count(self):
        tricky = ("char a = '{';  // {\nconst char* b = \"{\\\"{\";\n/* { */\nconst char* c = R\"x({ ' \" {)x\";\n"
                  "int d = 1'000'000;\n#define OPEN {\n")
        self.expect_one({"sim/main.cpp": tricky + body(61)}, "sim/main.cpp:7:", "f has 61 lines")
        self.assertEqual(self.violations({"sim/main.cpp": tricky + body(60)}), [])


if __name__ == "__main__":
    unittest.main()
