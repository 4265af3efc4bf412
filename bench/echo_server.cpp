#include "bench/echo_server.h"

#include <httplib.h>

#include <limits>
#include <thread>

namespace mortise::bench {

struct EchoServer::Impl {
  httplib::Server server;
  int port = 0;
  std::thread thread;
};

EchoServer::EchoServer() : impl_(std::make_unique<Impl>()) {
  httplib::Server& server = impl_->server;
  server.set_tcp_nodelay(true);
  server.set_keep_alive_max_count(std::numeric_limits<std::size_t>::max());
  server.Post(".*", [](const httplib::Request& request, httplib::Response& response) {
    response.set_content(request.body, "application/json");
  });
  const int port = server.bind_to_any_port("127.0.0.1");
  if (port <= 0) return;
  impl_->port = port;
  impl_->thread = std::thread([&server] { server.listen_after_bind(); });
}

EchoServer::~EchoServer() {
  impl_->server.stop();
  if (impl_->thread.joinable()) impl_->thread.join();
}

std::uint16_t EchoServer::port() const {
  return static_cast<std::uint16_t>(impl_->port);
}

}  // namespace mortise::bench
