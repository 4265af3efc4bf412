#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "scheduler/base/result.h"

namespace CLI {
class App;
}

namespace mortise::sim {

inline constexpr int kExitDone = 0;
inline constexpr int kExitNo = 1;   ///< the question was answered "no"
inline constexpr int kExitBad = 2;  ///< bad usage or bad input

/// What a verb does once its options are read: an exit code, or an error, which means kExitBad.
using VerbRun = std::function<Result<int>()>;

/// One row of the verb table. A new verb is one file, one row and one test.
struct Verb {
  std::string_view name;
  std::string_view description;
  VerbRun (*add)(CLI::App& app);  ///< declares the options on `app`
};

std::span<const Verb> verb_table();

/// The whole program: reads the command line, runs a verb, reports an error as one line on stderr.
int run_command_line(int argc, const char* const* argv);

/// Writes to stdout; an error when it cannot take the text.
Status print(std::string_view text);

VerbRun add_replay(CLI::App& app);
VerbRun add_replay_log(CLI::App& app);
VerbRun add_compare(CLI::App& app);
VerbRun add_admit(CLI::App& app);
VerbRun add_explain(CLI::App& app);
VerbRun add_policies(CLI::App& app);
VerbRun add_topo(CLI::App& app);
VerbRun add_trace(CLI::App& app);

}  // namespace mortise::sim
