#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "scheduler/kube/client/api_config.h"
#include "scheduler/kube/objects/text_file.h"

namespace mortise::kube {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Result<ApiConfig> in_cluster_config(const std::string& folder) {
  const std::string host = variable("KUBERNETES_SERVICE_HOST");
  const std::string port = variable("KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty()) {
    return Error{
        "not inside a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not both set; outside of one, "
        "name a kubeconfig"};
  }
  const bool v6 = host.find(':') != std::string::npos && host.front() != '[';
  const Result<ServerAddress> server = parse_server_url("https://" + (v6 ? "[" + host + "]" : host) + ":" + port);
  if (!server) return Error{"KUBERNETES_SERVICE_HOST and _PORT: " + server.message()};

  ApiConfig config;
  config.server = *server;
  config.token_file = folder + "/token";
  // Read here only to say at once that it is missing; the client reads it again as it changes.
  if (const Result<std::string> token = read_text_file(config.token_file); !token) return token.error();
  const Result<std::string> ca = read_text_file(folder + "/ca.crt");
  if (!ca) return ca.error();
  if (ca->empty()) return Error{folder + "/ca.crt: is empty"};
  config.ca_pem = *ca;
  std::error_code ignored;
  if (const std::string file = folder + "/namespace"; std::filesystem::exists(file, ignored)) {
    const Result<std::string> ns = read_text_file(file);
    if (!ns) return ns.error();
    config.default_namespace = ns->substr(0, ns->find_last_not_of(" \r\n\t") + 1);
  }
  return config;
}

}  // namespace mortise::kube
