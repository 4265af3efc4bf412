#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

struct ssl_ctx_st;
struct ssl_st;

namespace mortise::test {

struct FakeRequest {
  std::string method;
  std::string target;                          ///< path and query as sent
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;
  int connection = 0;  ///< which of the server's connections it came on, counted from 1

  /// Of the query, with %XX decoded; empty when it is not there.
  std::string parameter(const std::string& name) const;
  std::string path() const { return target.substr(0, target.find('?')); }
};

/// How a handler answers: exactly the bytes it wants, and no more.
class FakeExchange {
 public:
  FakeExchange(int fd, ssl_st* session) : fd_(fd), session_(session) {}

  /// A whole answer with a length. `headers` are lines that end in CRLF.
  void respond(int status, std::string_view body, std::string_view headers = {});
  /// A Kubernetes Status as an error.
  void respond_status(int status, std::string_view reason, std::string_view message, std::string_view headers = {});

  /// A chunked answer.
  void start_stream();
  void chunk(std::string_view text);
  void end_stream();

  void raw(std::string_view bytes);
  /// Closes the connection after what was sent.
  void drop() { dropped_ = true; }
  bool dropped() const { return dropped_; }
  /// Sends nothing more until the client goes away or the server stops.
  void wait_for_client_to_close();

 private:
  int fd_;
  ssl_st* session_;
  bool dropped_ = false;
};

struct FakeServerOptions {
  ssl_ctx_st* tls = nullptr;  ///< the server frees it
  bool v6 = false;
  bool answer_before_body = false;  ///< calls the handler after the head of a request, its body unread
};

/// A server on a loopback port whose answers a test writes out, with a thread for each connection.
class FakeApiServer {
 public:
  using Handler = std::function<void(const FakeRequest& request, FakeExchange& exchange)>;

  /// `handler` is called from several threads.
  explicit FakeApiServer(Handler handler, const FakeServerOptions& options = {});
  ~FakeApiServer();
  FakeApiServer(const FakeApiServer&) = delete;
  FakeApiServer& operator=(const FakeApiServer&) = delete;

  /// `http://127.0.0.1:PORT`, `https://...` with TLS, `[::1]` with IPv6.
  std::string url() const;
  std::uint16_t port() const { return port_; }
  int connections() const { return connections_; }
  /// Everything asked so far, `METHOD TARGET`.
  std::vector<std::string> asked() const;
  /// Cuts every connection; new ones are served.
  void cut_connections();

 private:
  struct Worker {
    std::thread thread;
    int fd = -1;
  };

  void accept_all();
  void serve(Worker& worker, int number);
  bool serve_one(int fd, ssl_st* session, int number, std::string& buffer);
  void stop();

  Handler handler_;
  const FakeServerOptions options_;
  const int listener_;
  const std::uint16_t port_;
  std::atomic<int> connections_ = 0;
  std::atomic<bool> stopping_ = false;
  mutable std::mutex mutex_;
  std::list<Worker> workers_;       // guarded by mutex_
  std::vector<std::string> asked_;  // guarded by mutex_
  std::thread accepter_;
};

/// A loopback port on which nothing listens.
std::uint16_t closed_port();

}  // namespace mortise::test
