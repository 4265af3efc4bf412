#!/usr/bin/env python3
"""Counts test cases of one ctest run: `count_tests.py JUNIT_FILE GTEST_XML_FOLDER`.

ctest knows executables; GoogleTest's own reports (one XML file per executable, named after it) know cases. Entries named
*_test have such a report: without one, or when the program failed although no case did (a crash, an early exit, a
timeout, a broken suite set-up), that is one failed case. Every other entry is one case. Lists what failed and what was skipped and why, and ends with
`N passed, N failed, N skipped`. Exits 1 when something failed or nothing ran.
"""
import os
import sys
import xml.etree.ElementTree as xml


def gtest_cases(path):
    """Yields (name, outcome, reason) for every case of one GoogleTest report."""
    for suite in xml.parse(path).getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            name = f"{case.get('classname')}.{case.get('name')}"
            skipped = case.find("skipped")
            if case.find("failure") is not None:
                yield name, "failed", ""
            elif skipped is not None:
                lines = skipped.get("message", "").split("\n", 1)
                yield name, "skipped", lines[-1].strip() or "no reason given"
            elif case.get("status") == "notrun":
                yield name, "skipped", "disabled"
            else:
                yield name, "passed", ""


def count(junit_file, gtest_folder):
    """Returns {outcome: [(name, reason)]}."""
    cases = {"passed": [], "failed": [], "skipped": []}
    for entry in xml.parse(junit_file).getroot().iter("testcase"):
        name = entry.get("name")
        entry_failed = entry.get("status") != "run"
        report = os.path.join(gtest_folder, name + ".xml")
        found = []
        if os.path.isfile(report):
            try:
                found = list(gtest_cases(report))
            except xml.ParseError:
                entry_failed = True
        elif name.endswith("_test"):
            entry_failed = True
        elif not entry_failed:
            found = [(name, "passed", "")]
        for case, outcome, reason in found:
            cases[outcome].append((case, reason))
        if entry_failed and not any(outcome == "failed" for _, outcome, _ in found):
            cases["failed"].append((name, "no case failed, but the program did not end as it should"))
    return cases


def main():
    if len(sys.argv) != 3:
        print(__doc__.split("\n", maxsplit=1)[0], file=sys.stderr)
        return 2
    cases = count(sys.argv[1], sys.argv[2])
    for outcome in ("skipped", "failed"):
        for name, reason in cases[outcome]:
            print(f"{outcome}: {name}" + (f": {reason}" if reason else ""))
    ran = len(cases["passed"]) + len(cases["failed"])
    if ran == 0:
        print("no test ran")
    print(", ".join(f"{len(cases[outcome])} {outcome}" for outcome in ("passed", "failed", "skipped")))
    return 1 if cases["failed"] or ran == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
