#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/extender/live.h"
#include "scheduler/extender/startup.h"
#include "scheduler/extender/tls.h"

namespace mortise::extender {

/// What the command line says; docs/extender.md describes the flags.
struct Options {
  StartOptions start;
  LiveOptions live;
  std::string listen = "127.0.0.1:8888";
  std::string admin = "127.0.0.1:8889";
  std::vector<std::string> schedulers;  ///< decided for; none: all are
  bool allow_bind = false;
  std::size_t max_request_mib = 256;
  std::size_t max_connections = 1280;
  std::size_t max_verbs = 0;         ///< 0: twice the number of processors
  std::int64_t shutdown_grace = 10;  ///< seconds
  TlsFiles tls;
  std::string admin_token_file;
  std::string log_level = "info";
  std::string log_format = "text";
};

/// An exit code when the program is to end now: usage or version were asked for, or a flag is wrong and one line says
/// so.
std::optional<int> read_options(int argc, char** argv, Options& options);

/// One line on standard error; the exit code of bad input.
int refuse(const std::string& why);

}  // namespace mortise::extender
