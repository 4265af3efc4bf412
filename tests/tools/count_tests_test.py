"""Feeds count_tests reports in the form that ctest 3.25 and GoogleTest 1.12 write them."""
import os
import sys
import tempfile
import unittest

SOURCE_DIR = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE_DIR, "tools"))
sys.dont_write_bytecode = True
import count_tests  # noqa: E402  (found through the line above)

PASS = '<testcase name="Pass" status="run" result="completed" classname="A"/>'
FAIL = '<testcase name="Fail" status="run" result="completed" classname="A"><failure message="a.cpp:2&#x0A;no"/></testcase>'
SKIP = ('<testcase name="Skip" status="run" result="skipped" classname="A">'
        '<skipped message="a.cpp:2&#x0A;no data: x &amp; y"/></testcase>')
DISABLED = '<testcase name="DISABLED_Off" status="notrun" result="suppressed" classname="A"/>'


class CountTestsTest(unittest.TestCase):
    def count(self, entries, reports):
        """entries: {ctest name: status}; reports: {executable: GoogleTest cases, or None for a cut file}."""
        with tempfile.TemporaryDirectory() as folder:
            junit = os.path.join(folder, "junit.xml")
            with open(junit, "w", encoding="utf-8") as file:
                rows = "".join(f'<testcase name="{name}" status="{status}"/>' for name, status in entries.items())
                file.write(f"<testsuite>{rows}</testsuite>")
            for name, cases in reports.items():
                with open(os.path.join(folder, name + ".xml"), "w", encoding="utf-8") as file:
                    file.write("<testsuites><testsuite" if cases is None else
                               f'<testsuites><testsuite name="A">{cases}</testsuite></testsuites>')
            cases = count_tests.count(junit, folder)
        return {outcome: [name for name, _ in found] for outcome, found in cases.items()}, cases

    def test_every_case_of_an_executable_counts(self):
        names, cases = self.count({"a_unit_test": "fail"}, {"a_unit_test": PASS + FAIL + SKIP + DISABLED})
        self.assertEqual(names, {"passed": ["A.Pass"], "failed": ["A.Fail"], "skipped": ["A.Skip", "A.DISABLED_Off"]})
        self.assertEqual(cases["skipped"][0][1], "no data: x & y")

    def test_an_entry_without_report_is_one_case(self):
        self.assertEqual(self.count({"layers": "run", "fuzz_wire": "fail"}, {})[0],
                         {"passed": ["layers"], "failed": ["fuzz_wire"], "skipped": []})

    def test_a_crash_after_passed_cases_fails(self):
        self.assertEqual(self.count({"a_unit_test": "fail"}, {"a_unit_test": PASS})[0]["failed"], ["a_unit_test"])

    def test_a_cut_report_fails(self):
        self.assertEqual(self.count({"a_unit_test": "run"}, {"a_unit_test": None})[0]["failed"], ["a_unit_test"])

    def test_an_early_exit_without_report_fails(self):
        self.assertEqual(self.count({"a_unit_test": "run"}, {})[0]["failed"], ["a_unit_test"])

    def test_an_executable_that_was_not_built_fails(self):
        self.assertEqual(self.count({"a_unit_test": "notrun"}, {})[0]["failed"], ["a_unit_test"])

    def test_a_left_over_report_of_another_executable_does_not_count(self):
        self.assertEqual(self.count({"layers": "run"}, {"old_unit_test": FAIL})[0]["failed"], [])


if __name__ == "__main__":
    unittest.main()
