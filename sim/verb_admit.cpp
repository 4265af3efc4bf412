#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>

#include "scheduler/topology/admit_cases.h"
#include "sim/verbs.h"

namespace mortise::sim {

namespace {

constexpr const char* kFooter =
    "Reads one JSON case a line from standard input, answers with one JSON object a line. A case has a node and a "
    "pod,\n"
    "or the hints of its resources as they are; docs/topology-manager.md describes both. Answering is done (exit code "
    "0)\n"
    "also where the answer is that kubelet refuses the pod; a case that cannot be read ends the run (exit code 2).";

// With --json the answers become one document.
Result<int> run_admit(bool json) {
  topology::AdmitCases cases;
  std::string line;
  std::size_t number = 0;
  bool first = true;
  if (json) {
    if (const Status status = print("["); !status) return status.error();
  }
  while (std::getline(std::cin, line)) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Result<std::string> answer = cases.answer(line);
    if (!answer) return Error{fmt::format("standard input, line {}: {}", number, answer.message())};
    const std::string_view separator = json && !first ? "," : "";
    if (const Status status = print(fmt::format("{}{}{}", separator, *answer, json ? "" : "\n")); !status) {
      return status.error();
    }
    first = false;
  }
  if (std::cin.bad()) return Error{"cannot read standard input"};
  if (json) {
    if (const Status status = print("]\n"); !status) return status.error();
  }
  return kExitDone;
}

}  // namespace

VerbRun add_admit(CLI::App& app) {
  const auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "One JSON document on stdout: a list of all answers");
  app.footer(kFooter);
  return [json]() -> Result<int> { return run_admit(*json); };
}

}  // namespace mortise::sim
