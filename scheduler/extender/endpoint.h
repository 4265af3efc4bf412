#pragma once

#include <string>
#include <string_view>

#include "scheduler/base/result.h"

namespace mortise::extender {

struct Endpoint {
  std::string host;
  int port = 0;  ///< 0: any free one
};

/// Reads `ADDR:PORT`; an IPv6 address stands in brackets.
Result<Endpoint> parse_endpoint(std::string_view text);

}  // namespace mortise::extender
