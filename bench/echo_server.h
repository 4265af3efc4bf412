#pragma once

#include <cstdint>
#include <memory>

namespace mortise::bench {

/// Answers every POST with its own body, through the same HTTP library as mortise-extender: what is left of a latency
/// when the server does nothing with what it reads.
class EchoServer {
 public:
  EchoServer();
  ~EchoServer();
  /// 0 when no port could be had.
  std::uint16_t port() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mortise::bench
