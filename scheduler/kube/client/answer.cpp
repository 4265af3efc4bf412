#include "scheduler/kube/client/answer.h"

namespace mortise::kube {

const char* to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::kDone:
      return "done";
    case Outcome::kConflict:
      return "conflict";
    case Outcome::kNotFound:
      return "not found";
    case Outcome::kRefused:
      return "refused";
    case Outcome::kLater:
      return "later";
    case Outcome::kNotSent:
      return "not sent";
    case Outcome::kUnknown:
      break;
  }
  return "unknown";
}

Outcome outcome_of(const ApiResult& result) {
  if (const TransportError* error = result.transport_error()) {
    return error->may_have_arrived ? Outcome::kUnknown : Outcome::kNotSent;
  }
  if (result.ok()) return Outcome::kDone;
  switch (const int status = result.response()->status) {
    case 404:
      return Outcome::kNotFound;
    case 408:  // the server gave up on a request that it may have begun
      return Outcome::kUnknown;
    case 409:
      return Outcome::kConflict;
    case 429:
      return Outcome::kLater;
    default:
      return status >= 500 ? Outcome::kUnknown : Outcome::kRefused;
  }
}

Done done_of(const ApiResult& result) {
  Done done;
  done.outcome = outcome_of(result);
  if (done.done()) return done;
  done.detail = result.describe();
  if (const ApiResponse* response = result.response()) done.retry_after = response->retry_after;
  return done;
}

}  // namespace mortise::kube
