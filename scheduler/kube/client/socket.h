#pragma once

#include "scheduler/base/result.h"
#include "scheduler/kube/client/connection.h"

namespace mortise::kube {

/// A connected, non-blocking TCP socket; the caller closes it. Tries every address that the host's name has.
Result<int> connect_socket(const ServerAddress& server, const IoLimits& limits);

/// Waits until `fd` is ready for `events` (or broken, which the next call on it tells). The time of silence counts from
/// here.
Trouble wait_ready(int fd, short events, const IoLimits& limits);

}  // namespace mortise::kube
