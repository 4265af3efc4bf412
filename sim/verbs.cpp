#include "sim/verbs.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <sstream>

namespace mortise::sim {

namespace {

constexpr Verb kVerbs[] = {
    {"replay", "Run one simulation: place a trace's pods one after another on a cluster", add_replay},
    {"replay-log", "Take the decisions of a live cluster again, with its policy or another", add_replay_log},
    {"compare", "Run traces x policies x seeds in parallel and compare the policies", add_compare},
    {"explain", "Tell where pods and gangs of a manifest would go, or why they do not fit and what would help",
     add_explain},
    {"admit", "Tell what kubelet's Topology Manager would decide about pods on nodes", add_admit},
    {"topo", "Read, print and draw the topology of a machine", add_topo},
    {"policies", "List the placement policies", add_policies},
    {"trace", "Look at a trace, or make one", add_trace},
};

std::string known_verbs() {
  std::string names;
  for (const Verb& verb : kVerbs) names.append(names.empty() ? "" : ", ").append(verb.name);
  return names;
}

int report_error(std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  std::fprintf(stderr, "mortise: %s\n", message.c_str());
  return kExitBad;
}

/// The chain of subcommands that was reached, such as "mortise trace stat".
std::string command_of(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app.get_name() : app.get_name() + " " + command_of(*chosen.front());
}

int run_verb(const CLI::App& app, const std::map<const CLI::App*, VerbRun>& runs) {
  const auto chosen = app.get_subcommands();
  if (chosen.empty()) return report_error("no verb given; known: " + known_verbs());
  const Result<int> outcome = runs.at(chosen.front())();
  return outcome ? *outcome : report_error(outcome.message());
}

/// Help and version are "errors" with code 0; only those print to stdout.
int print_asked(const CLI::App& app, const CLI::ParseError& asked) {
  std::ostringstream text;
  app.exit(asked, text, text);
  const Status printed = print(text.str());
  return printed ? kExitDone : report_error(printed.message());
}

int parse_and_run(int argc, const char* const* argv) {
  CLI::App app("Replays cluster traces through Mortise's placement core and measures the result", "mortise");
  app.set_version_flag("--version", "mortise " MORTISE_VERSION);
  app.require_subcommand(0, 1);
  std::map<const CLI::App*, VerbRun> runs;
  for (const Verb& verb : kVerbs) {
    CLI::App* verb_app = app.add_subcommand(std::string(verb.name), std::string(verb.description));
    runs[verb_app] = verb.add(*verb_app);
  }
  if (argc > 1 && argv[1][0] != '-') {
    const std::string_view wanted = argv[1];
    const bool known =
        std::any_of(std::begin(kVerbs), std::end(kVerbs), [&](const Verb& v) { return v.name == wanted; });
    if (!known) return report_error(fmt::format("unknown verb '{}'; known: {}", wanted, known_verbs()));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return print_asked(app, error);
    const std::string command = command_of(app);
    return report_error(fmt::format("{}; see '{} --help'", error.what(), command));
  }
  return run_verb(app, runs);
}

}  // namespace

std::span<const Verb> verb_table() {
  return kVerbs;
}

Status print(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!written) return Error{"cannot write to standard output"};
  return ok_status();
}

int run_command_line(int argc, const char* const* argv) {
  try {
    return parse_and_run(argc, argv);
  } catch (const std::bad_alloc&) {
    return report_error("out of memory");
  } catch (const std::exception& error) {
    return report_error(fmt::format("internal error: {}", error.what()));
  }
}

}  // namespace mortise::sim
