#include "bench/http_client.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

namespace mortise::bench {

namespace {
constexpr std::size_t kChunk = std::size_t{1} << 20;

Result<std::size_t> content_length(std::string_view head) {
  constexpr std::string_view kName = "\r\nContent-Length:";
  for (std::size_t at = 0; (at = head.find("\r\n", at)) != std::string_view::npos; at += 2) {
    if (head.size() - at < kName.size() || strncasecmp(head.data() + at, kName.data(), kName.size()) != 0) continue;
    std::string_view rest = head.substr(at + kName.size());
    while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
    std::size_t value = 0;
    if (std::from_chars(rest.data(), rest.data() + rest.size(), value).ec == std::errc{}) return value;
  }
  return Error{"a message without Content-Length"};
}

/// Appends what is there; false at the end of the stream.
bool receive(int fd, std::string& buffer, std::size_t& used) {
  if (buffer.size() - used < kChunk) buffer.resize(buffer.size() + buffer.size() / 2 + kChunk);
  const ssize_t got = recv(fd, buffer.data() + used, buffer.size() - used, 0);
  if (got <= 0) return false;
  used += static_cast<std::size_t>(got);
  return true;
}
}  // namespace

Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}

Result<Socket> connect_loopback(std::uint16_t port) {
  Socket connection(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(connection.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return Error{"127.0.0.1:" + std::to_string(port) + ": " + std::strerror(errno)};
  }
  const int on = 1;
  setsockopt(connection.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return connection;
}

bool send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

Result<Message> read_message(int fd, std::string& buffer) {
  std::size_t used = 0;
  std::size_t end = std::string_view::npos;
  while (end == std::string_view::npos) {
    if (!receive(fd, buffer, used)) return Error{"the connection was closed"};
    end = std::string_view(buffer.data(), used).find("\r\n\r\n");
  }
  Message message;
  message.head = buffer.substr(0, end + 2);
  const auto size = content_length(message.head);
  if (!size) return size.error();
  message.body_size = *size;
  const std::size_t total = end + 4 + message.body_size;
  if (buffer.size() < total) buffer.resize(total);
  while (used < total) {
    const ssize_t got = recv(fd, buffer.data() + used, total - used, 0);
    if (got <= 0) return Error{"the connection was closed in the middle of a message"};
    used += static_cast<std::size_t>(got);
  }
  return message;
}

}  // namespace mortise::bench
