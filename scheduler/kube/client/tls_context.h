#pragma once

#include <memory>
#include <string>

#include "scheduler/base/result.h"
#include "scheduler/kube/client/api_config.h"

struct ssl_ctx_st;
struct ssl_st;

namespace mortise::kube {

/// What every TLS connection to one API server shares: whom to trust, which name to expect, our certificate.
/// Trusts just the authorities given, or the system's when none are. Safe for use by several threads at once.
class TlsContext {
 public:
  static Result<std::shared_ptr<const TlsContext>> make(const ApiConfig& config);

  /// A session that is set up to verify the server; null when memory is short. To be freed with SSL_free.
  ssl_st* new_session() const;

 private:
  struct Free {
    void operator()(ssl_ctx_st* context) const;
  };
  explicit TlsContext(ssl_ctx_st* context, const ApiConfig& config);

  std::unique_ptr<ssl_ctx_st, Free> context_;
  std::string name_;
  bool verify_;
};

/// The oldest error that OpenSSL has queued for this thread, as text; clears the queue.
std::string tls_error_text();

}  // namespace mortise::kube
