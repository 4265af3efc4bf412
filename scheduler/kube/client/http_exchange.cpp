#include "scheduler/kube/client/http_exchange.h"

#include <httplib.h>
#include <strings.h>

#include <algorithm>
#include <exception>
#include <string>

namespace mortise::kube {
namespace {

constexpr std::size_t kMaxHeadBytes = std::size_t{64} << 10;
// httplib matches the first line with std::regex, whose recursion grows with the text.
constexpr std::size_t kMaxFirstLineBytes = 1024;

/// httplib's view of a connection. Bounds the head of an answer; the body's bound is the receiver's. A request is sent
/// as a whole once its answer is asked for: head and body apart would be two packets, for each of which a server wakes
/// up.
class Stream final : public httplib::Stream {
 public:
  explicit Stream(Connection& connection) : connection_(connection) {}

  bool is_readable() const override { return true; }
  bool is_writable() const override { return connection_.trouble() == Trouble::kNone; }
  ssize_t read(char* to, std::size_t size) override {
    if (!send_request()) return -1;
    if (!in_head_) return connection_.read(to, size);
    if (head_bytes_ >= (in_first_line_ ? kMaxFirstLineBytes : kMaxHeadBytes)) return -1;
    const ssize_t count = connection_.read(to, std::min<std::size_t>(size, 1));
    if (count > 0) {
      ++head_bytes_;
      if (*to == '\n') in_first_line_ = false;
    }
    return count;
  }
  ssize_t write(const char* from, std::size_t size) override {
    request_.append(from, size);
    return static_cast<ssize_t>(size);
  }
  socket_t socket() const override { return connection_.fd(); }
  // Nothing we do looks at addresses.
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}

  void end_head() { in_head_ = false; }
  /// Whether all of the request has left.
  bool sent() const { return request_.empty(); }

 private:
  bool send_request() {
    if (request_.empty()) return true;
    if (connection_.write(request_.data(), request_.size()) < 0) return false;
    request_.clear();
    return true;
  }

  Connection& connection_;
  std::string request_;  // of which nothing is known to have left
  bool in_head_ = true;
  bool in_first_line_ = true;
  std::size_t head_bytes_ = 0;
};

/// httplib's client without its sockets: those end a wait for a silent server by a time limit only, check certificates
/// against the system's authorities on top of the one named, and do not tell how far a request got.
class Client final : public httplib::ClientImpl {
 public:
  Client() : httplib::ClientImpl("unused") {
    set_url_encode(false);
    set_decompress(false);
  }
  using httplib::ClientImpl::process_request;
};

httplib::Request build(const HttpRequest& from) {
  httplib::Request request;
  request.method = from.method;
  request.path = from.target;
  request.body = from.body;
  request.set_header("Host", from.host);
  request.set_header("Accept", "application/json");
  // Compressing costs the API server more than the bytes are worth within a cluster.
  request.set_header("Accept-Encoding", "identity");
  request.set_header("User-Agent", "mortise");
  if (!from.content_type.empty()) request.set_header("Content-Type", from.content_type);
  if (!from.token.empty()) request.set_header("Authorization", "Bearer " + from.token);
  return request;
}

}  // namespace

ExchangeEnd exchange(Connection& connection, const HttpRequest& from, HttpHead& head, const BodyReceiver& receive) {
  head = {};
  const std::uint64_t read_before = connection.bytes_read();
  Stream stream(connection);
  httplib::Request request = build(from);
  request.response_handler = [&](const httplib::Response& response) {
    stream.end_head();
    head.status = response.status;
    head.retry_after = response.get_header_value("Retry-After");
    return true;
  };
  request.content_receiver = [&](const char* data, std::size_t size, std::uint64_t, std::uint64_t) {
    return receive(head, {data, size});
  };

  httplib::Response response;
  httplib::Error error = httplib::Error::Success;
  bool complete = false;
  try {
    Client client;
    complete = client.process_request(stream, request, response, /*close_connection=*/false, error);
  } catch (const std::exception&) {
    error = httplib::Error::Read;  // out of memory, say: the answer is lost
  }
  if (complete) {
    head.status = response.status;  // a 204 has no body, so httplib calls no handler
    const std::string connection_header = response.get_header_value("Connection");
    head.keeps_connection = response.version == "HTTP/1.1" && strcasecmp(connection_header.c_str(), "close") != 0;
    return ExchangeEnd::kComplete;
  }
  if (error == httplib::Error::Canceled) return ExchangeEnd::kUnwanted;
  if (error == httplib::Error::Write || !stream.sent()) return ExchangeEnd::kNotSent;
  return connection.bytes_read() == read_before ? ExchangeEnd::kNoAnswer : ExchangeEnd::kCutShort;
}

}  // namespace mortise::kube
