// For developers and end-to-end tests: what scheduler/kube/client sees and does at a real API server, as JSON lines.
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "scheduler/base/clock.h"
#include "scheduler/kube/client/bind_pod.h"
#include "scheduler/kube/client/config_map.h"
#include "scheduler/kube/client/lease.h"
#include "scheduler/kube/client/patch_annotations.h"
#include "scheduler/kube/client/read_pod.h"
#include "scheduler/kube/client/reflector.h"
#include "scheduler/kube/client/resource_path.h"
#include "scheduler/kube/objects/decode.h"

namespace {

using namespace mortise;
using namespace mortise::kube;
using nlohmann::json;

void print(const json& line) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::printf("%s\n", line.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
  std::fflush(stdout);
}

json show(const Node& node) {
  return {{"name", node.name}, {"version", node.resource_version}, {"annotations", node.annotations}};
}

json show(const Pod& pod) {
  return {
      {"name", pod.name}, {"version", pod.resource_version}, {"node", pod.node_name}, {"annotations", pod.annotations}};
}

template <class T>
class PrintingFeed final : public TypedFeed<T> {
 public:
  PrintingFeed(const char* resource, typename TypedFeed<T>::Decode decoder)
      : TypedFeed<T>(decoder), resource_(resource) {}

  void on_replace(std::vector<T> objects, const std::string&) override {
    json names = json::array();
    for (const T& object : objects) names.push_back(object.name);
    print({{"resource", resource_}, {"event", "replace"}, {"names", names}});
  }
  void on_upsert(T object) override {
    json line = show(object);
    line.update({{"resource", resource_}, {"event", "upsert"}});
    print(line);
  }
  void on_delete(const ObjectName& name) override {
    print({{"resource", resource_}, {"event", "delete"}, {"name", name.name}});
  }
  void on_bad_object(const ObjectName& name, const std::string& why) override {
    print({{"resource", resource_}, {"event", "bad object"}, {"name", name.name}, {"why", why}});
  }
  void on_progress(const std::string&) override {}

 private:
  const char* resource_;
};

void print_status(const char* resource, const Reflector& reflector) {
  const ReflectorStatus now = reflector.status();
  print({{"resource", resource},
         {"event", "status"},
         {"synced", now.synced},
         {"absent", now.absent},
         {"lists", now.lists},
         {"pages", now.pages},
         {"watches", now.watches},
         {"events", now.events},
         {"expired", now.expired},
         {"gaps", now.gaps},
         {"failures", now.failures},
         {"last_error", now.last_error}});
}

/// Prints nodes, pods and an absent custom resource until SIGTERM; then how it went.
int follow(ApiClient& client, std::size_t page_size, const Clock& clock) {
  sigset_t stop_signals;
  sigemptyset(&stop_signals);
  sigaddset(&stop_signals, SIGTERM);
  sigaddset(&stop_signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stop_signals, nullptr);

  SleepingWaiter waiter;
  const auto options = [&](const char* path, bool optional) {
    ReflectorOptions made = {.path = path};
    made.optional = optional;
    made.page_size = page_size;
    return made;
  };
  PrintingFeed<Node> nodes("nodes", decode_node);
  PrintingFeed<Pod> pods("pods", decode_pod);
  PrintingFeed<Node> absent("absent", decode_node);
  Reflector node_reflector(client, nodes, options("/api/v1/nodes", false), clock, waiter, 1);
  Reflector pod_reflector(client, pods, options("/api/v1/pods", false), clock, waiter, 2);
  Reflector absent_reflector(client, absent, options("/apis/none.invalid/v1/things", true), clock, waiter, 3);
  {
    std::jthread a([&](const std::stop_token& stop) { node_reflector.run(stop); });
    std::jthread b([&](const std::stop_token& stop) { pod_reflector.run(stop); });
    std::jthread c([&](const std::stop_token& stop) { absent_reflector.run(stop); });
    int received = 0;
    sigwait(&stop_signals, &received);
  }
  print_status("nodes", node_reflector);
  print_status("pods", pod_reflector);
  print_status("absent", absent_reflector);
  return 0;
}

/// 0: done, 1: not.
template <class T>
int report(const Answer<T>& answer) {
  json line = {{"outcome", to_string(answer.outcome)}, {"detail", answer.detail}};
  if constexpr (!std::is_same_v<T, std::monostate>) {
    if (answer.value) line["version"] = answer.value->resource_version;
  }
  print(line);
  return answer.done() ? 0 : 1;
}

/// `KEY=VALUE`, each.
std::map<std::string, std::string> pairs(const std::vector<std::string>& texts) {
  std::map<std::string, std::string> all;
  for (const std::string& text : texts) {
    const std::size_t mark = std::min(text.find('='), text.size());
    all[text.substr(0, mark)] = text.substr(std::min(mark + 1, text.size()));
  }
  return all;
}

struct Arguments {
  std::string kubeconfig;
  std::string ns = "default";
  std::string name;
  std::string uid;
  std::string node;
  std::string holder;
  std::string version;
  std::vector<std::string> values;
  std::size_t page_size = 500;
};

int bind(ApiClient& client, const Arguments& given) {
  return report(bind_pod(client, {given.ns, given.name, given.uid, given.node, pairs(given.values)}));
}

int annotate(ApiClient& client, const Arguments& given) {
  AnnotationPatch patch;
  patch.path = resource_path("/api/v1", "", "nodes", given.name);
  for (const auto& [key, value] : pairs(given.values)) {
    patch.annotations[key] = value.empty() ? std::nullopt : std::optional(value);
  }
  return report(patch_annotations(client, patch));
}

/// Creates the lease, or with --version updates that state of it.
int write_lease(ApiClient& client, const Arguments& given) {
  Lease lease;
  lease.ns = given.ns;
  lease.name = given.name;
  lease.resource_version = given.version;
  lease.holder = given.holder;
  lease.duration_seconds = 15;
  lease.renew_time = micro_time(std::chrono::system_clock::now());
  return report(given.version.empty() ? create_lease(client, lease) : update_lease(client, lease));
}

int write_config_map(ApiClient& client, const Arguments& given) {
  ConfigMap map;
  map.ns = given.ns;
  map.name = given.name;
  map.resource_version = given.version;
  map.data = pairs(given.values);
  return report(given.version.empty() ? create_config_map(client, map) : update_config_map(client, map));
}

int run(const CLI::App& app, const Arguments& given) {
  const SteadyClock clock;
  const Result<ApiConfig> config = read_kubeconfig(given.kubeconfig);
  const Result<std::unique_ptr<ApiClient>> client =
      config ? ApiClient::make(*config, {}, clock) : Result<std::unique_ptr<ApiClient>>(config.error());
  if (!client) {
    std::fprintf(stderr, "kube_probe: %s\n", client.message().c_str());
    return 2;
  }
  if (app.got_subcommand("follow")) return follow(**client, given.page_size, clock);
  if (app.got_subcommand("bind")) return bind(**client, given);
  if (app.got_subcommand("annotate-node")) return annotate(**client, given);
  if (app.got_subcommand("lease")) return write_lease(**client, given);
  if (app.got_subcommand("config-map")) return write_config_map(**client, given);
  return report(read_pod(**client, given.ns, given.name));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What scheduler/kube/client sees and does at an API server, as JSON lines");
  Arguments given;
  app.add_option("--kubeconfig", given.kubeconfig)->required();
  app.add_option("--namespace", given.ns);
  app.require_subcommand(1);
  CLI::App* follow = app.add_subcommand("follow", "Nodes and pods until SIGTERM");
  follow->add_option("--page-size", given.page_size);
  CLI::App* bind = app.add_subcommand("bind", "Bind a pod");
  bind->add_option("--uid", given.uid)->required();
  bind->add_option("--node", given.node)->required();
  CLI::App* annotate = app.add_subcommand("annotate-node", "Set annotations; an empty value takes one away");
  CLI::App* lease = app.add_subcommand("lease", "Create a lease, or update one version of it");
  lease->add_option("--holder", given.holder)->required();
  CLI::App* map = app.add_subcommand("config-map", "Create a config map, or update one version of it");
  CLI::App* pod = app.add_subcommand("pod", "Read a pod");
  for (CLI::App* command : {lease, map}) command->add_option("--version", given.version);
  for (CLI::App* command : {bind, annotate, lease, map, pod}) command->add_option("name", given.name)->required();
  for (CLI::App* command : {bind, annotate, map}) command->add_option("values", given.values, "KEY=VALUE");
  CLI11_PARSE(app, argc, argv);
  return run(app, given);
}
