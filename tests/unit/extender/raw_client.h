#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace mortise::extender {

struct RawResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;
};

/// Sends bytes as they are and reads answers one by one: the tests say exactly what is on the wire.
class RawClient {
 public:
  /// `address` is 127.0.0.1:PORT.
  explicit RawClient(const std::string& address) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const std::size_t colon = address.rfind(':');
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(std::atoi(address.c_str() + colon + 1)));
    inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr);
    const timeval limit{60, 0};  // a lost answer fails the test instead of hanging it
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  }
  ~RawClient() { close(fd_); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return connected_; }
  int fd() const { return fd_; }

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

  /// The next answer; empty when the server closes first.
  std::optional<RawResponse> receive() {
    std::size_t end = 0;
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
      if (!more()) return std::nullopt;
    }
    RawResponse response = parse_head(buffer_.substr(0, end + 2));
    buffer_.erase(0, end + 4);
    const auto length = response.headers.find("content-length");
    const std::size_t size = length == response.headers.end() ? 0 : std::stoull(length->second);
    while (buffer_.size() < size) {
      if (!more()) return std::nullopt;
    }
    response.body = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return response;
  }

  /// Waits for the server to close the connection; false when it sends something instead.
  bool closed_by_server() { return buffer_.empty() && !more(); }

 private:
  bool more() {
    char chunk[4096];
    const ssize_t count = recv(fd_, chunk, sizeof chunk, 0);
    if (count <= 0) return false;
    buffer_.append(chunk, static_cast<std::size_t>(count));
    return true;
  }

  static RawResponse parse_head(const std::string& head) {
    RawResponse response;
    response.status = std::atoi(head.c_str() + head.find(' ') + 1);
    for (std::size_t at = head.find("\r\n") + 2; at < head.size();) {
      const std::size_t end = head.find("\r\n", at);
      const std::string line = head.substr(at, end - at);
      std::string name = line.substr(0, line.find(':'));
      std::transform(name.begin(), name.end(), name.begin(),
                     [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
      response.headers[name] = line.substr(std::min(line.size(), line.find(':') + 2));
      at = end + 2;
    }
    return response;
  }

  int fd_;
  bool connected_ = false;
  std::string buffer_;
};

inline std::string post_text(std::string_view path, std::string_view body) {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + std::string(body);
}

}  // namespace mortise::extender
