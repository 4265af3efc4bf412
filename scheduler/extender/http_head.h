#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "scheduler/base/result.h"

namespace mortise::extender {

class Connection;

/// Where a request's body ends.
struct Framing {
  bool chunked = false;
  std::uint64_t length = 0;  ///< when not chunked

  bool has_body() const { return chunked || length > 0; }
};

/// Reads it from the head of a request, which ends with an empty line. Refuses what two readers of the same bytes could
/// understand differently (lines without CR, spaces in names, continued lines, more than one length): the next
/// request would begin at another place for each of them.
Result<Framing> read_framing(std::string_view head);

enum class BodyEnd {
  kWhole,
  kTooLarge,  ///< read to its end, so that the connection can go on, but not kept
  kBroken,    ///< cut short or malformed; where the next request begins is not known
};

/// Appends the body to `body`. Trailers of a chunked one are read and dropped.
BodyEnd read_body(Connection& connection, const Framing& framing, std::size_t limit, std::string& body);

}  // namespace mortise::extender
