#include "scheduler/extender/http_server.h"

#include <fcntl.h>
#include <httplib.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <functional>
#include <list>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "scheduler/base/clock.h"
#include "scheduler/extender/connection.h"
#include "scheduler/extender/wire.h"

namespace mortise::extender {
namespace {

constexpr int kListenBacklog = 1024;
constexpr std::size_t kMaxPathBytes = 256;
constexpr std::size_t kMaxAdminRequestBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxAdminConnections = 64;
constexpr const char* kJson = "application/json";
constexpr const char* kPlain = "text/plain; charset=utf-8";

/// httplib's view of a connection.
class Stream final : public httplib::Stream {
 public:
  explicit Stream(Connection& connection) : connection_(connection) {}

  bool is_readable() const override { return true; }
  bool is_writable() const override { return !connection_.broken(); }
  ssize_t read(char* to, std::size_t size) override { return connection_.read(to, size); }
  ssize_t write(const char* from, std::size_t size) override { return connection_.write(from, size); }
  socket_t socket() const override { return connection_.fd(); }
  // Nothing we serve looks at addresses.
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}

 private:
  Connection& connection_;
};

/// httplib hands no connection to a handler; each connection has its own thread, so this finds it.
thread_local Connection* current_connection = nullptr;

bool has_body(const httplib::Request& request) {
  return request.has_header("Transfer-Encoding") || request.get_header_value<std::uint64_t>("Content-Length") > 0;
}

void answer(httplib::Response& response, Reply reply, const char* type) {
  response.status = reply.status;
  response.body = std::move(reply.body);  // set_content would copy it
  response.set_header("Content-Type", type);
}

/// Takes out of a request what httplib would act on and we do not want.
void prepare(httplib::Request& request) {
  current_connection->end_header();
  // It would compress our answers, which costs more than sending them.
  request.headers.erase("Accept-Encoding");
  // A multipart body would be taken apart; the type of a body is not looked at, as Go's server does not.
  request.headers.erase("Content-Type");
  request.ranges.clear();
  // It matches paths with std::regex, whose recursion grows with the text; none of ours is long.
  if (request.path.size() > kMaxPathBytes) request.path.resize(kMaxPathBytes);
  // Without a length it would read until the client closes; HTTP says there is no body.
  if (!has_body(request)) {
    request.headers.erase("Content-Length");
    request.set_header("Content-Length", "0");
  } else if (request.method != "POST") {
    // Only POST bodies are read; the next request would begin inside this one's body.
    current_connection->close_when_answered();
  }
}

std::string bound_address(int fd, bool& loopback) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size);
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (storage.ss_family == AF_INET) {
    const auto& in = reinterpret_cast<const sockaddr_in&>(storage);
    loopback = (ntohl(in.sin_addr.s_addr) >> 24) == 127;
    inet_ntop(AF_INET, &in.sin_addr, text.data(), text.size());
    return std::string(text.data()) + ":" + std::to_string(ntohs(in.sin_port));
  }
  const auto& in6 = reinterpret_cast<const sockaddr_in6&>(storage);
  loopback = IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
  inet_ntop(AF_INET6, &in6.sin6_addr, text.data(), text.size());
  return "[" + std::string(text.data()) + "]:" + std::to_string(ntohs(in6.sin6_port));
}

/// One path and the one method it has.
struct Route {
  std::string method;
  std::string path;
  const char* type;
  std::function<Reply(std::string body)> handle;
  std::function<Reply(const std::string& why)> refuse;  ///< what a POST gets whose body is not taken
};

/// What goes wrong here is ours, but the caller gets it in the form the verb has for errors.
Reply handle(const Route& route, std::string body) {
  try {
    return route.handle(std::move(body));
  } catch (const std::exception& error) {
    return route.refuse(std::string("internal error: ") + error.what());
  }
}

}  // namespace

/// httplib reads requests and writes answers; sockets, threads and shutdown are ours, since its accept loop ends at the
/// first failed accept and its stop waits for idle connections to time out.
class HttpServer::Listener : public httplib::Server {
 public:
  Listener(std::size_t max_request_bytes, std::size_t max_connections);
  ~Listener() override { stop_serving(); }

  Status open(const Endpoint& at);
  /// Before run().
  void add(Route route) { routes_.push_back(std::move(route)); }
  void run();
  void stop_serving();

  const std::string& address() const { return address_; }
  bool on_loopback() const { return loopback_; }

 private:
  struct Worker {
    std::thread thread;
    int fd = -1;  // -1 once the thread has nothing left to do
  };

  const Route* find_route(const std::string& path) const;
  Reply refuse_route(const httplib::Request& request, httplib::Response& response) const;
  HandlerResponse serve_without_body(const httplib::Request& request, httplib::Response& response) const;
  void serve_post(const httplib::Request& request, httplib::Response& response,
                  const httplib::ContentReader& reader) const;

  void accept_all();
  bool wait_for_slot();
  void start_worker(int fd);
  void serve(Worker& worker);
  void serve_requests(int fd);

  std::size_t max_request_bytes_;
  std::size_t max_connections_;
  std::vector<Route> routes_;
  std::string address_;
  bool loopback_ = false;
  int wake_ = -1;  // an eventfd, readable once the server stops
  std::thread accepter_;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;
  std::condition_variable worker_done_;
  std::list<Worker> workers_;  // guarded by mutex_
};

HttpServer::Listener::Listener(std::size_t max_request_bytes, std::size_t max_connections)
    : max_request_bytes_(max_request_bytes), max_connections_(max_connections) {
  set_keep_alive_max_count(std::size_t{1} << 30);  // both are sent to the client as hints
  set_keep_alive_timeout(Connection::kIdleSeconds);
  set_payload_max_length(max_request_bytes);
  // Not SO_REUSEPORT, httplib's default: two servers would share the port without a word.
  set_socket_options([](socket_t fd) {
    const int yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  set_exception_handler([](const httplib::Request&, httplib::Response& response, const std::exception_ptr&) {
    current_connection->close_when_answered();
    answer(response, {500, "internal error\n"}, kPlain);
  });
  set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
    return serve_without_body(request, response);
  });
  Post(R"([\s\S]*)", [this](const httplib::Request& request, httplib::Response& response,
                            const httplib::ContentReader& reader) { serve_post(request, response, reader); });
}

const Route* HttpServer::Listener::find_route(const std::string& path) const {
  const auto found = std::find_if(routes_.begin(), routes_.end(), [&](const Route& r) { return r.path == path; });
  return found == routes_.end() ? nullptr : &*found;
}

/// 405 for a known path, else 404.
Reply HttpServer::Listener::refuse_route(const httplib::Request& request, httplib::Response& response) const {
  std::string served;
  for (const Route& route : routes_) served += " " + route.method + " " + route.path;
  const Route* route = find_route(request.path);
  if (route == nullptr) return {404, "no such path; served here:" + served + "\n"};
  response.set_header("Allow", route->method);
  return {405, "wrong method; served here:" + served + "\n"};
}

httplib::Server::HandlerResponse HttpServer::Listener::serve_without_body(const httplib::Request& request,
                                                                          httplib::Response& response) const {
  if (request.method == "POST") return HandlerResponse::Unhandled;
  const Route* route = find_route(request.path);
  if (route != nullptr && route->method == "GET" && (request.method == "GET" || request.method == "HEAD")) {
    answer(response, route->handle({}), route->type);
  } else {
    answer(response, refuse_route(request, response), kPlain);
  }
  return HandlerResponse::Handled;
}

void HttpServer::Listener::serve_post(const httplib::Request& request, httplib::Response& response,
                                      const httplib::ContentReader& reader) const {
  const Route* route = find_route(request.path);
  const bool wanted = route != nullptr && route->method == "POST";
  std::string body;
  if (wanted) {
    const auto length = static_cast<std::size_t>(request.get_header_value<std::uint64_t>("Content-Length"));
    body.reserve(std::min(length, max_request_bytes_) + kBodyPadding);
  }
  // A body we do not take is still read to its end: a client that is cut off while sending never sees the answer.
  std::size_t size = 0;
  const bool complete = reader([&](const char* data, std::size_t count) {
    size += count;
    if (wanted && size <= max_request_bytes_) body.append(data, count);
    return true;
  });
  const bool too_large = response.status == 413 || size > max_request_bytes_;
  if (!complete && !too_large) {
    current_connection->close_when_answered();
    answer(response, {400, "request body is cut short or malformed\n"}, kPlain);
  } else if (!wanted) {
    answer(response, refuse_route(request, response), kPlain);
  } else if (too_large) {
    const std::string limit = std::to_string(max_request_bytes_ >> 20);
    Reply reply = route->refuse("request is larger than " + limit + " MiB (--max-request-mib)");
    if (reply.status != 200) reply.status = 413;
    answer(response, std::move(reply), route->type);
  } else {
    answer(response, handle(*route, std::move(body)), route->type);
  }
}

Status HttpServer::Listener::open(const Endpoint& at) {
  const std::string where = at.host + ":" + std::to_string(at.port);
  errno = 0;
  const bool bound = at.port == 0 ? bind_to_any_port(at.host) > 0 : bind_to_port(at.host, at.port);
  const int fd = svr_sock_;
  if (!bound || fd < 0) {
    return Error{"cannot listen on " + where + (errno != 0 ? std::string(": ") + std::strerror(errno) : "")};
  }
  // httplib asks for a backlog of 5; a burst of binds opens many connections at once.
  ::listen(fd, kListenBacklog);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_ < 0) return Error{"cannot listen on " + where + ": " + std::strerror(errno)};
  address_ = bound_address(fd, loopback_);
  return ok_status();
}

void HttpServer::Listener::run() {
  accepter_ = std::thread([this] { accept_all(); });
}

void HttpServer::Listener::accept_all() {
  std::array<pollfd, 2> waited{{{svr_sock_, POLLIN, 0}, {wake_, POLLIN, 0}}};
  while (!stopping_ && wait_for_slot()) {
    if (poll(waited.data(), waited.size(), -1) <= 0 || waited[1].revents != 0) continue;
    const int fd = accept4(svr_sock_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) {
      start_worker(fd);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      poll(&waited[1], 1, 10);  // until a connection closes; the new one stays in the backlog
    }
  }
}

/// Joins what has finished; false once the server stops.
bool HttpServer::Listener::wait_for_slot() {
  std::unique_lock lock(mutex_);
  for (;;) {
    for (auto it = workers_.begin(); it != workers_.end();) {
      if (it->fd >= 0) {
        ++it;
        continue;
      }
      it->thread.join();
      it = workers_.erase(it);
    }
    if (stopping_) return false;
    if (workers_.size() < max_connections_) return true;
    worker_done_.wait(lock);
  }
}

void HttpServer::Listener::start_worker(int fd) {
  const std::lock_guard lock(mutex_);
  Worker& worker = workers_.emplace_back();
  worker.fd = fd;
  try {
    worker.thread = std::thread([this, &worker] { serve(worker); });
  } catch (const std::system_error&) {  // no thread to be had
    ::close(fd);
    workers_.pop_back();
  }
}

void HttpServer::Listener::serve(Worker& worker) {
  const int fd = worker.fd;
  try {
    serve_requests(fd);
  } catch (...) {
    // Out of memory while reading a request, say. It costs this connection, not the server.
  }
  current_connection = nullptr;
  ::shutdown(fd, SHUT_RDWR);
  const std::lock_guard lock(mutex_);
  ::close(fd);  // under the mutex, so that stop_serving never shuts a reused number down
  worker.fd = -1;
  worker_done_.notify_all();
}

void HttpServer::Listener::serve_requests(int fd) {
  const SteadyClock clock;
  Connection connection(fd, clock);
  Stream stream(connection);
  current_connection = &connection;
  while (!stopping_ && connection.wait_for_request()) {
    bool understood = false;
    bool client_closes = false;
    const bool answered = process_request(stream, false, client_closes, [&](httplib::Request& request) {
      understood = true;
      prepare(request);
    });
    // What was not understood has no known end, so the next request has no known beginning.
    if (!connection.flush() || !answered || !understood || client_closes || connection.closing()) return;
  }
}

void HttpServer::Listener::stop_serving() {
  if (stopping_.exchange(true)) return;
  if (wake_ >= 0) eventfd_write(wake_, 1);
  {
    const std::lock_guard lock(mutex_);
    // The readers see the end of their input; an answer being made is still sent.
    for (const Worker& worker : workers_) {
      if (worker.fd >= 0) ::shutdown(worker.fd, SHUT_RD);
    }
    worker_done_.notify_all();
  }
  if (accepter_.joinable()) accepter_.join();
  // No new workers from here on; those accepted since the loop above are told, too.
  {
    const std::lock_guard lock(mutex_);
    for (const Worker& worker : workers_) {
      if (worker.fd >= 0) ::shutdown(worker.fd, SHUT_RD);
    }
  }
  for (Worker& worker : workers_) worker.thread.join();
  workers_.clear();
  if (const int fd = svr_sock_.exchange(-1); fd >= 0) ::close(fd);
  if (wake_ >= 0) ::close(wake_);
}

HttpServer::HttpServer(std::unique_ptr<Listener> listener) : listener_(std::move(listener)) {}
HttpServer::~HttpServer() = default;

std::string HttpServer::address() const {
  return listener_->address();
}

void HttpServer::stop() {
  listener_->stop_serving();
}

Result<std::unique_ptr<HttpServer>> HttpServer::start_scheduler(Service& service, const Endpoint& at,
                                                                const ServerOptions& options) {
  auto listener = std::make_unique<Listener>(options.max_request_bytes, options.max_connections);
  if (const Status opened = listener->open(at); !opened.ok()) return opened.error();
  const bool bind_allowed = options.allow_bind || listener->on_loopback();
  const auto add = [&](std::string path, Verb verb, Reply (Service::*handle)(std::string)) {
    const auto refuse = [&service, verb](const std::string& why) { return service.refuse(verb, why); };
    listener->add({"POST", std::move(path), kJson,
                   [=, &service](std::string body) {
                     if (verb == Verb::kBind && !bind_allowed) {
                       return refuse("bind is served on loopback addresses only; see --allow-bind");
                     }
                     return (service.*handle)(std::move(body));
                   },
                   refuse});
  };
  add("/filter", Verb::kFilter, &Service::filter);
  add("/prioritize", Verb::kPrioritize, &Service::prioritize);
  add("/bind", Verb::kBind, &Service::bind);
  add("/preempt", Verb::kPreempt, &Service::preempt);
  listener->run();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(listener)));
}

Result<std::unique_ptr<HttpServer>> HttpServer::start_admin(Service& service, const Endpoint& at) {
  auto listener = std::make_unique<Listener>(kMaxAdminRequestBytes, kMaxAdminConnections);
  if (const Status opened = listener->open(at); !opened.ok()) return opened.error();
  // The cluster is read before the first listener opens, so whoever can ask is served by one that is ready.
  for (const char* path : {"/healthz", "/readyz"}) {
    listener->add({"GET", path, kPlain, [](const std::string&) { return Reply{200, "ok\n"}; }, nullptr});
  }
  listener->add({"GET", "/metrics", "text/plain; version=0.0.4; charset=utf-8",
                 [&service](const std::string&) {
                   return Reply{200, service.metrics_text()};
                 },
                 nullptr});
  listener->run();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(listener)));
}

}  // namespace mortise::extender
