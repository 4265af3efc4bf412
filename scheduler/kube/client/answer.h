#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "scheduler/base/result.h"
#include "scheduler/base/units.h"
#include "scheduler/kube/client/api_client.h"

namespace mortise::kube {

/// What became of a request.
enum class Outcome {
  kDone,
  kConflict,  ///< 409: it exists already, was changed by somebody else, or is in another state than the request takes
  kNotFound,  ///< 404
  kRefused,   ///< any other answer that will be the same next time: invalid, forbidden
  kLater,     ///< 429: not done; the server wants to be asked later
  kNotSent,   ///< not done: the request did not reach a server
  kUnknown,   ///< done or not: no answer, or one that leaves it open (500, 504). Read the object before going on.
};

const char* to_string(Outcome outcome);

/// The outcome of a request, and what was read.
template <class T>
struct Answer {
  Outcome outcome = Outcome::kUnknown;
  std::string detail;                           ///< one line; empty when done
  std::optional<Nanoseconds> retry_after = {};  ///< as the server asks
  std::optional<T> value = {};                  ///< set when done

  bool done() const { return outcome == Outcome::kDone; }
};

/// Nothing but the outcome.
using Done = Answer<std::monostate>;

Outcome outcome_of(const ApiResult& result);
Done done_of(const ApiResult& result);

/// The outcome, with the object that the server sent back. An object that cannot be read leaves the outcome unknown.
template <class T>
Answer<T> answer_of(const ApiResult& result, Result<T> (*decode)(std::string_view body)) {
  Answer<T> answer;
  const Done done = done_of(result);
  answer.outcome = done.outcome;
  answer.detail = done.detail;
  answer.retry_after = done.retry_after;
  if (!answer.done()) return answer;
  Result<T> decoded = decode(result.response()->body);
  if (decoded.ok()) {
    answer.value = *std::move(decoded);
  } else {
    answer.outcome = Outcome::kUnknown;
    answer.detail = "the server's answer cannot be read: " + decoded.message();
  }
  return answer;
}

}  // namespace mortise::kube
