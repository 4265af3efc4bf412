#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "scheduler/base/result.h"

namespace mortise::kube {

/// Where an API server listens.
struct ServerAddress {
  bool tls = true;
  std::string host;  ///< a name, an IPv4 address, or an IPv6 address without brackets
  std::uint16_t port = 443;
  std::string base_path;  ///< before every path, for servers behind a proxy: empty or `/a/b`, no slash at the end

  /// `HOST:PORT` with brackets around an IPv6 address: for messages and the Host header.
  std::string authority() const;
};

/// Reads `https://HOST[:PORT][/PATH]`, `http://...`, or `HOST[:PORT]`, which is https as kubectl takes it.
Result<ServerAddress> parse_server_url(std::string_view url);

/// How to reach an API server and who to be there. PEM and token are contents, not file names.
struct ApiConfig {
  ServerAddress server;
  std::string ca_pem;           ///< empty: the authorities that the system trusts
  std::string client_cert_pem;  ///< empty: no client certificate; otherwise `client_key_pem` is set, too
  std::string client_key_pem;
  std::string tls_server_name;  ///< the name that the server's certificate must carry; empty: the host
  bool verify_server = true;
  std::string token;              ///< fixed bearer token
  std::string token_file;         ///< its content is the bearer token, read again when it changes; goes before `token`
  std::string default_namespace;  ///< of the context or of the service account; may be empty
};

/// Reads one context of a kubeconfig file (YAML or JSON), the current one when `context` is empty. File names in it are
/// relative to its folder. What would need another program or a proxy is refused, not left out: exec plugins,
/// auth-provider, user name and password, impersonation, proxy-url.
Result<ApiConfig> read_kubeconfig(const std::string& path, const std::string& context = {});

/// The same from text; `path` is for messages and for relative file names.
Result<ApiConfig> parse_kubeconfig(const std::string& text, const std::string& path, const std::string& context);

inline constexpr const char* kServiceAccountFolder = "/var/run/secrets/kubernetes.io/serviceaccount";

/// What a pod is given: the environment variables KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT, and the files
/// `token`, `ca.crt` and `namespace` (may be absent) of the service account.
Result<ApiConfig> in_cluster_config(const std::string& folder = kServiceAccountFolder);

}  // namespace mortise::kube
