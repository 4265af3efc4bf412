#include <cstdint>
#include <cstdlib>
#include <string>

#include "scheduler/kube/client/api_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mortise;
  const std::string text(reinterpret_cast<const char*>(data), size);
  // A folder that does not exist, so that no file name in the input is one.
  const auto config = kube::parse_kubeconfig(text, "/nowhere/config", {});
  if (!config.ok()) {
    const std::string& why = config.message();
    if (!why.starts_with("/nowhere/config:") || why.find_first_of("\r\n") != std::string::npos) std::abort();
    return 0;
  }
  if (config->server.host.empty() || config->server.port == 0) std::abort();
  if (config->client_cert_pem.empty() != config->client_key_pem.empty()) std::abort();
  // What was understood is understood the same when it is written out.
  const std::string url = (config->server.tls ? "https://" : "http://") + config->server.authority();
  const auto again = kube::parse_server_url(url + config->server.base_path);
  if (!again.ok() || again->host != config->server.host || again->base_path != config->server.base_path) std::abort();
  return 0;
}
