#include "scheduler/extender/router.h"

#include <httplib.h>

#include <algorithm>
#include <exception>
#include <string_view>
#include <utility>

#include "scheduler/extender/connection.h"
#include "scheduler/extender/gate.h"
#include "scheduler/extender/http_head.h"
#include "scheduler/extender/wire.h"

namespace mortise::extender {
namespace {

constexpr const char* kPlain = "text/plain; charset=utf-8";
constexpr const char* kPagePolicy = "default-src 'none'; style-src 'unsafe-inline'";  // our pages load nothing
constexpr const char* kRetryAfterSeconds = "1";

/// httplib's view of a connection: it reads the head that we have checked, and nothing else.
class Stream final : public httplib::Stream {
 public:
  Stream(Connection& connection, std::string_view head) : connection_(connection), head_(head) {}

  bool is_readable() const override { return true; }
  bool is_writable() const override { return !connection_.broken(); }
  ssize_t read(char* to, std::size_t size) override {
    const std::size_t count = head_.copy(to, size);
    head_.remove_prefix(count);
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* from, std::size_t size) override { return connection_.write(from, size); }
  socket_t socket() const override { return -1; }
  // Nothing we serve looks at addresses.
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}

 private:
  Connection& connection_;
  std::string_view head_;
};

/// What a request under way belongs to.
struct Exchange {
  Connection& connection;
  const Framing& framing;
  Listener::Admission admission;
};

/// httplib hands nothing of ours to a handler; each connection has its own thread, so this finds it.
thread_local const Exchange* current = nullptr;

void answer(httplib::Response& response, Reply reply, const char* type) {
  response.status = reply.status;
  response.body = std::move(reply.body);  // set_content would copy it
  response.set_header("Content-Type", type);
  if (reply.status == 401) response.set_header("WWW-Authenticate", "Bearer");
  if (std::string_view(type).starts_with("text/html")) response.set_header("Content-Security-Policy", kPagePolicy);
}

void answer_unavailable(httplib::Response& response, const char* why) {
  response.set_header("Retry-After", kRetryAfterSeconds);
  answer(response, {503, why}, kPlain);
}

/// An answer to what httplib does not get to see.
void refuse_unread(Connection& connection, const char* status, const std::string& why) {
  const std::string text = "HTTP/1.1 " + std::string(status) + "\r\nContent-Type: " + kPlain +
                           "\r\nContent-Length: " + std::to_string(why.size() + 1) + "\r\nConnection: close\r\n\r\n" +
                           why + "\n";
  connection.write(text.data(), text.size());
  connection.close_when_answered();
}

/// Takes out of a request what httplib would act on and we do not want.
void prepare(httplib::Request& request) {
  // It would compress our answers, which costs more than sending them.
  request.headers.erase("Accept-Encoding");
  request.ranges.clear();
}

bool matches(const Route& route, const std::string& path) {
  return path == route.path || (route.path.size() > 1 && route.path.ends_with('/') && path.starts_with(route.path));
}

WebRequest view_of(const httplib::Request& request, std::string body) {
  WebRequest view;
  view.path = request.path;
  view.query.insert(request.params.begin(), request.params.end());
  view.authorization = request.get_header_value("Authorization");
  view.body = std::move(body);
  return view;
}

/// What goes wrong here is ours, but the caller gets it in the form the verb has for errors.
Reply handle(const Route& route, WebRequest request) {
  try {
    return route.handle(std::move(request));
  } catch (const std::exception& error) {
    const std::string why = std::string("internal error: ") + error.what();
    return route.refuse ? route.refuse(why) : Reply{500, why + "\n"};
  }
}

}  // namespace

/// httplib parses the head and writes the answer. Its routing is not used (it matches paths with std::regex), nor its
/// reading of bodies (it does not know trailers and takes malformed lengths).
class Router::Impl : private httplib::Server {
 public:
  Impl(RouterOptions options, std::vector<Route> routes);
  void serve(Connection& connection, Listener::Admission admission);

 private:
  bool serve_one(Connection& connection, const std::string& head, Listener::Admission admission);
  void respond(const httplib::Request& request, httplib::Response& response) const;
  void respond_with(const Route& route, const httplib::Request& request, httplib::Response& response, BodyEnd end,
                    std::string body) const;
  Reply refuse_route(const httplib::Request& request, httplib::Response& response) const;
  const Route* find_route(const std::string& path) const;

  const RouterOptions options_;
  const std::vector<Route> routes_;
};

Router::Impl::Impl(RouterOptions options, std::vector<Route> routes)
    : options_(std::move(options)), routes_(std::move(routes)) {
  set_keep_alive_max_count(std::size_t{1} << 30);  // both are sent to the client as hints
  set_keep_alive_timeout(Connection::kIdleSeconds);
  set_exception_handler([](const httplib::Request&, httplib::Response& response, const std::exception_ptr&) {
    current->connection.close_when_answered();
    answer(response, {500, "internal error\n"}, kPlain);
  });
  set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
    respond(request, response);
    return HandlerResponse::Handled;
  });
}

const Route* Router::Impl::find_route(const std::string& path) const {
  const auto found = std::find_if(routes_.begin(), routes_.end(), [&](const Route& r) { return matches(r, path); });
  return found == routes_.end() ? nullptr : &*found;
}

/// 405 for a known path, else 404.
Reply Router::Impl::refuse_route(const httplib::Request& request, httplib::Response& response) const {
  std::string served;
  for (const Route& route : routes_) served += " " + route.method + " " + route.path;
  const Route* route = find_route(request.path);
  if (route == nullptr) return {404, "no such path; served here:" + served + "\n"};
  response.set_header("Allow", route->method);
  return {405, "wrong method; served here:" + served + "\n"};
}

void Router::Impl::respond(const httplib::Request& request, httplib::Response& response) const {
  const Route* route = find_route(request.path);
  const bool taken = current->admission == Listener::Admission::kServed || (route != nullptr && route->always);
  const bool wanted = taken && route != nullptr && route->method == request.method;
  std::string body;
  if (wanted && current->framing.has_body()) {
    const std::size_t length = current->framing.chunked ? 0 : static_cast<std::size_t>(current->framing.length);
    body.reserve(std::min(length, options_.max_request_bytes) + kBodyPadding);
  }
  // A body we do not take is still read to its end: a client that is cut off while sending never sees the answer.
  const std::size_t limit = wanted ? options_.max_request_bytes : 0;
  const BodyEnd end = read_body(current->connection, current->framing, limit, body);
  if (end == BodyEnd::kBroken) {
    current->connection.close_when_answered();
    answer(response, {400, "request body is cut short or malformed\n"}, kPlain);
  } else if (!taken) {
    answer_unavailable(response, "too many connections (--max-connections)\n");
  } else if (!wanted) {
    answer(response, refuse_route(request, response), kPlain);
  } else {
    respond_with(*route, request, response, end, std::move(body));
  }
}

void Router::Impl::respond_with(const Route& route, const httplib::Request& request, httplib::Response& response,
                                BodyEnd end, std::string body) const {
  if (end == BodyEnd::kTooLarge) {
    const std::string why =
        "request is larger than " + std::to_string(options_.max_request_bytes >> 20) + " MiB (--max-request-mib)";
    Reply reply = route.refuse ? route.refuse(why) : Reply{413, why + "\n"};
    if (reply.status != 200) reply.status = 413;
    answer(response, std::move(reply), route.type);
    return;
  }
  if (route.gate == nullptr) {
    answer(response, handle(route, view_of(request, std::move(body))), route.type);
    return;
  }
  const Pass pass(*route.gate, options_.gate_patience);
  if (pass) {
    answer(response, handle(route, view_of(request, std::move(body))), route.type);
    return;
  }
  if (options_.count_refused) options_.count_refused();
  answer_unavailable(response, "too many requests at once (--max-verbs)\n");
}

/// False when the connection cannot go on.
bool Router::Impl::serve_one(Connection& connection, const std::string& head, Listener::Admission admission) {
  const Result<Framing> framing = read_framing(head);
  if (!framing.ok()) {
    refuse_unread(connection, "400 Bad Request", framing.message());
    return false;
  }
  Stream stream(connection, head);
  const Exchange exchange{connection, *framing, admission};
  current = &exchange;
  const bool last = admission == Listener::Admission::kTurnedAway || (options_.stopping && options_.stopping());
  if (last) connection.close_when_answered();
  bool understood = false;
  bool client_closes = false;
  const bool answered = process_request(stream, last, client_closes, [&](httplib::Request& request) {
    understood = true;
    prepare(request);
  });
  current = nullptr;
  // What was not understood has no known end, so the next request has no known beginning.
  if (!understood) connection.close_when_answered();
  return connection.flush() && answered && !client_closes && !connection.closing();
}

void Router::Impl::serve(Connection& connection, Listener::Admission admission) {
  std::string head;
  while (connection.wait_for_request(options_.stop_fd)) {
    const Connection::Head found = connection.read_head(head);
    if (found == Connection::Head::kTooLarge) {
      refuse_unread(connection, "431 Request Header Fields Too Large", "the header is larger than 64 KiB");
    }
    if (found != Connection::Head::kWhole || !serve_one(connection, head, admission)) return;
  }
}

Router::Router(RouterOptions options, std::vector<Route> routes)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(routes))) {}
Router::~Router() = default;

void Router::serve(Connection& connection, Listener::Admission admission) {
  impl_->serve(connection, admission);
}

}  // namespace mortise::extender
