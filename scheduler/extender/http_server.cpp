#include "scheduler/extender/http_server.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "scheduler/extender/admin_token.h"
#include "scheduler/extender/cluster_view.h"
#include "scheduler/extender/gate.h"
#include "scheduler/extender/listener.h"
#include "scheduler/extender/readiness.h"
#include "scheduler/extender/router.h"

namespace mortise::extender {
namespace {

constexpr std::size_t kMaxAdminRequestBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxAdminConnections = 64;
constexpr const char* kJson = "application/json";
constexpr const char* kMetricsText = "text/plain; version=0.0.4; charset=utf-8";
const std::string kNodesPath = "/v1/nodes/";
constexpr const char* kPlain = "text/plain; charset=utf-8";

std::size_t places(const ServerOptions& options) {
  if (options.max_verbs > 0) return options.max_verbs;
  return 2 * std::max<std::size_t>(1, std::thread::hardware_concurrency());
}

Route verb_route(Service& service, const ServerOptions& options, Verb verb, std::string path,
                 Reply (Service::*handle)(std::string)) {
  return {"POST", std::move(path), kJson,
          [=, &service, readiness = options.readiness, asked = options.asked](WebRequest request) {
            if (asked) asked();
            const std::string obstacle = readiness != nullptr ? readiness->obstacle() : std::string();
            return obstacle.empty() ? (service.*handle)(std::move(request.body)) : service.refuse(verb, obstacle);
          },
          [&service, verb](const std::string& why) { return service.refuse(verb, why); }};
}

std::string query_value(const WebRequest& request, const char* name) {
  const auto found = request.query.find(name);
  return found == request.query.end() ? std::string() : found->second;
}

Reply ready(const Readiness* readiness, const WebRequest& request) {
  const std::string exclude = query_value(request, "exclude");
  if (!exclude.empty() && !Readiness::knows(exclude)) return {400, "exclude: allowed are synced, leader, serving\n"};
  const std::string report = readiness != nullptr ? readiness->report(exclude) : std::string();
  return report.empty() ? Reply{200, "ok\n"} : Reply{503, report};
}

/// The names of pods are for those who have the token, where there is one.
Reply with_token(const AdminToken* token, const WebRequest& request, const std::function<Reply()>& tell) {
  if (token != nullptr && !token->admits(request.authorization)) {
    return {401, "{\"error\":\"names of pods need the token: Authorization: Bearer TOKEN\"}\n"};
  }
  return tell();
}

Reply explain(ClusterView& view, const WebRequest& request) {
  return view.explain(query_value(request, "namespace"), query_value(request, "pod"));
}

void add_view(ClusterView& view, const AdminToken* token, std::vector<Route>& routes) {
  routes.push_back({"GET", "/v1/cluster", kJson, [&view](const WebRequest&) { return view.cluster(); }});
  routes.push_back({"GET", kNodesPath, kJson,
                    [&view](const WebRequest& request) { return view.node(request.path.substr(kNodesPath.size())); }});
  routes.push_back({"GET", "/v1/explain", kJson, [&view, token](const WebRequest& request) {
                      return with_token(token, request, [&] { return explain(view, request); });
                    }});
  routes.push_back({"GET", "/v1/gangs", kJson, [&view, token](const WebRequest& request) {
                      return with_token(token, request, [&] { return view.gangs(); });
                    }});
  routes.push_back({"GET", "/", "text/html; charset=utf-8", [&view, token](const WebRequest& request) {
                      return view.page(token == nullptr || token->admits(request.authorization));
                    }});
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(ListenerSide side, const ServerOptions& options);
  ~Impl() { stop(0); }

  Status open(const Endpoint& at) { return listener_.open(at); }
  void run(std::vector<Route> routes);
  void stop(Nanoseconds grace, const std::function<void()>& cut = {}) { listener_.stop(grace, cut); }
  const Listener& listener() const { return listener_; }
  Gate& gate() { return gate_; }

 private:
  ListenerSide side_;
  ServerOptions options_;
  Gate gate_;
  std::unique_ptr<Router> router_;  // used by the listener's threads
  Listener listener_;
};

namespace {
Listener::Options listener_options(ListenerSide side, const ServerOptions& options) {
  Listener::Options made{.max_connections = options.max_connections, .tls = options.tls};
  if (Metrics* metrics = options.metrics) {
    made.count_open = [=](int by) { metrics->count_connections(side, by); };
    made.count_turned_away = [=] { metrics->count_unavailable(side, Shortage::kConnections); };
  }
  return made;
}
}  // namespace

HttpServer::Impl::Impl(ListenerSide side, const ServerOptions& options)
    : side_(side), options_(options), gate_(places(options)), listener_(listener_options(side, options)) {}

void HttpServer::Impl::run(std::vector<Route> routes) {
  RouterOptions made{.max_request_bytes = options_.max_request_bytes, .gate_patience = options_.verb_patience};
  if (options_.metrics != nullptr) {
    made.count_refused = [this] { options_.metrics->count_unavailable(side_, Shortage::kVerbs); };
  }
  made.stopping = [this] { return listener_.stopping(); };
  made.stop_fd = listener_.stop_fd();
  router_ = std::make_unique<Router>(std::move(made), std::move(routes));
  listener_.run(
      [this](Connection& connection, Listener::Admission admission) { router_->serve(connection, admission); });
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

std::string HttpServer::address() const {
  return impl_->listener().address();
}

void HttpServer::stop(Nanoseconds grace, const std::function<void()>& cut) {
  impl_->stop(grace, cut);
}

Result<std::unique_ptr<HttpServer>> HttpServer::start_scheduler(Service& service, const Endpoint& at,
                                                                const ServerOptions& options) {
  auto impl = std::make_unique<Impl>(ListenerSide::kScheduler, options);
  if (const Status opened = impl->open(at); !opened.ok()) return opened.error();
  std::vector<Route> routes = {verb_route(service, options, Verb::kFilter, "/filter", &Service::filter),
                               verb_route(service, options, Verb::kPrioritize, "/prioritize", &Service::prioritize),
                               verb_route(service, options, Verb::kPreempt, "/preempt", &Service::preempt)};
  for (Route& route : routes) route.gate = &impl->gate();
  // Bind takes next to no processor time, and may wait for others.
  Route bind = verb_route(service, options, Verb::kBind, "/bind", &Service::bind);
  if (!options.allow_bind && !impl->listener().on_loopback()) {
    bind.handle = [refuse = bind.refuse](const WebRequest&) {
      return refuse("bind is served on loopback addresses only; see --allow-bind");
    };
  }
  routes.push_back(std::move(bind));
  impl->run(std::move(routes));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

Result<std::unique_ptr<HttpServer>> HttpServer::start_admin(Service& service, const Endpoint& at,
                                                            const AdminOptions& options) {
  auto impl = std::make_unique<Impl>(ListenerSide::kAdmin, ServerOptions{.max_request_bytes = kMaxAdminRequestBytes,
                                                                         .max_connections = kMaxAdminConnections,
                                                                         .metrics = options.metrics});
  if (const Status opened = impl->open(at); !opened.ok()) return opened.error();
  std::vector<Route> routes;
  routes.push_back({"GET", "/healthz", kPlain, [](const WebRequest&) { return Reply{200, "ok\n"}; }});
  routes.push_back({"GET", "/readyz", kPlain,
                    [readiness = options.readiness](const WebRequest& request) { return ready(readiness, request); }});
  // Whoever holds all connections must not make kubelet end the process.
  for (Route& route : routes) route.always = true;
  routes.push_back({"GET", "/metrics", kMetricsText, [&service, view = options.view](const WebRequest&) {
                      return view != nullptr ? view->metrics() : Reply{200, service.metrics_text()};
                    }});
  if (options.view != nullptr) add_view(*options.view, options.token, routes);
  impl->run(std::move(routes));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

}  // namespace mortise::extender
