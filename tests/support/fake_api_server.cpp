#include "tests/support/fake_api_server.h"

#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>

namespace mortise::test {
namespace {

/// Loopback, any port.
int open_listener(bool v6) {
  const int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 in6{};
  in6.sin6_family = AF_INET6;
  in6.sin6_addr = in6addr_loopback;
  const int bound = v6 ? bind(fd, reinterpret_cast<sockaddr*>(&in6), sizeof in6)
                       : bind(fd, reinterpret_cast<sockaddr*>(&in), sizeof in);
  if (bound != 0) throw std::runtime_error("no loopback port");
  return fd;
}

std::uint16_t port_of(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size);
  return ntohs(storage.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(storage).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(storage).sin_port);
}

ssize_t read_some(int fd, ssl_st* session, std::string& buffer) {
  std::array<char, 4096> piece{};
  const ssize_t count = session != nullptr ? SSL_read(session, piece.data(), static_cast<int>(piece.size()))
                                           : recv(fd, piece.data(), piece.size(), 0);
  if (count > 0) buffer.append(piece.data(), static_cast<std::size_t>(count));
  return count;
}

FakeRequest parse_head(const std::string& head) {
  FakeRequest request;
  const std::size_t method_end = head.find(' ');
  request.method = head.substr(0, method_end);
  request.target = head.substr(method_end + 1, head.find(' ', method_end + 1) - method_end - 1);
  for (std::size_t at = head.find("\r\n") + 2; at < head.size();) {
    const std::size_t end = head.find("\r\n", at);
    const std::size_t colon = head.find(':', at);
    std::string name = head.substr(at, colon - at);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
    request.headers[name] = head.substr(colon + 2, end - colon - 2);
    at = end + 2;
  }
  return request;
}

std::string decode_percent(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      out += static_cast<char>(std::strtol(std::string(text.substr(i + 1, 2)).c_str(), nullptr, 16));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

std::string FakeRequest::parameter(const std::string& name) const {
  std::string_view query = target;
  query.remove_prefix(std::min(query.find('?'), query.size()));
  while (!query.empty()) {
    query.remove_prefix(1);  // ? or &
    const std::string_view pair = query.substr(0, query.find('&'));
    if (pair.substr(0, pair.find('=')) == name) return decode_percent(pair.substr(pair.find('=') + 1));
    query.remove_prefix(pair.size());
  }
  return {};
}

void FakeExchange::raw(std::string_view bytes) {
  while (!bytes.empty() && !dropped_) {
    const ssize_t count = session_ != nullptr ? SSL_write(session_, bytes.data(), static_cast<int>(bytes.size()))
                                              : send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) {
      dropped_ = true;
      return;
    }
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

void FakeExchange::respond(int status, std::string_view body, std::string_view headers) {
  raw("HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Type: application/json\r\n" + std::string(headers) +
      "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body));
}

void FakeExchange::respond_status(int status, std::string_view reason, std::string_view message,
                                  std::string_view headers) {
  respond(status,
          R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":")" + std::string(message) +
              R"(","reason":")" + std::string(reason) + R"(","code":)" + std::to_string(status) + "}",
          headers);
}

void FakeExchange::start_stream() {
  raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
}

void FakeExchange::chunk(std::string_view text) {
  std::array<char, 24> size{};
  std::snprintf(size.data(), size.size(), "%zx\r\n", text.size());
  raw(std::string(size.data()) + std::string(text) + "\r\n");
}

void FakeExchange::end_stream() {
  raw("0\r\n\r\n");
}

void FakeExchange::wait_for_client_to_close() {
  std::string ignored;
  while (read_some(fd_, session_, ignored) > 0) {
  }
  dropped_ = true;
}

FakeApiServer::FakeApiServer(Handler handler, const FakeServerOptions& options)
    : handler_(std::move(handler)), options_(options), listener_(open_listener(options.v6)), port_(port_of(listener_)) {
  listen(listener_, 128);
  accepter_ = std::thread([this] { accept_all(); });
}

FakeApiServer::~FakeApiServer() {
  stop();
  SSL_CTX_free(options_.tls);
}

std::string FakeApiServer::url() const {
  return std::string(options_.tls != nullptr ? "https://" : "http://") + (options_.v6 ? "[::1]:" : "127.0.0.1:") +
         std::to_string(port_);
}

std::vector<std::string> FakeApiServer::asked() const {
  const std::lock_guard lock(mutex_);
  return asked_;
}

void FakeApiServer::accept_all() {
  while (!stopping_) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    const std::lock_guard lock(mutex_);
    Worker& worker = workers_.emplace_back();
    worker.fd = fd;
    worker.thread = std::thread([this, &worker, number = ++connections_] { serve(worker, number); });
  }
}

void FakeApiServer::serve(Worker& worker, int number) {
  sigset_t broken_pipe;  // SSL_write may raise it; blocked here, so that the client under test gets no help
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);

  const int fd = worker.fd;
  const std::unique_ptr<ssl_st, decltype(&SSL_free)> session(options_.tls != nullptr ? SSL_new(options_.tls) : nullptr,
                                                             SSL_free);
  bool open = true;
  if (session) {
    SSL_set_fd(session.get(), fd);
    open = SSL_accept(session.get()) == 1;
  }
  std::string buffer;
  while (open) open = serve_one(fd, session.get(), number, buffer);
  ERR_clear_error();
  const std::lock_guard lock(mutex_);
  close(fd);  // under the mutex, so that nobody shuts a reused number down
  worker.fd = -1;
}

bool FakeApiServer::serve_one(int fd, ssl_st* session, int number, std::string& buffer) {
  std::size_t head_end = 0;
  while ((head_end = buffer.find("\r\n\r\n")) == std::string::npos) {
    if (read_some(fd, session, buffer) <= 0) return false;
  }
  FakeRequest request = parse_head(buffer.substr(0, head_end + 2));
  buffer.erase(0, head_end + 4);
  const auto length = request.headers.find("content-length");
  const std::size_t size = length == request.headers.end() ? 0 : std::stoul(length->second);
  while (buffer.size() < size && !options_.answer_before_body) {
    if (read_some(fd, session, buffer) <= 0) return false;
  }
  request.body = buffer.substr(0, size);
  request.connection = number;
  buffer.erase(0, size);
  {
    const std::lock_guard lock(mutex_);
    asked_.push_back(request.method + " " + request.target);
  }
  FakeExchange exchange(fd, session);
  handler_(request, exchange);
  return !exchange.dropped();
}

void FakeApiServer::cut_connections() {
  const std::lock_guard lock(mutex_);
  for (const Worker& worker : workers_) {
    if (worker.fd >= 0) shutdown(worker.fd, SHUT_RDWR);
  }
}

void FakeApiServer::stop() {
  stopping_ = true;
  shutdown(listener_, SHUT_RDWR);
  accepter_.join();
  close(listener_);
  cut_connections();
  for (Worker& worker : workers_) worker.thread.join();
}

std::uint16_t closed_port() {
  const int fd = open_listener(false);
  const std::uint16_t port = port_of(fd);
  close(fd);
  return port;
}

}  // namespace mortise::test
