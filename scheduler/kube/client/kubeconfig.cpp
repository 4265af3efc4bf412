#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "scheduler/base/quote.h"
#include "scheduler/kube/client/api_config.h"
#include "scheduler/kube/client/base64.h"
#include "scheduler/kube/objects/field.h"
#include "scheduler/kube/objects/text_file.h"
#include "scheduler/kube/objects/yaml_text.h"

namespace mortise::kube {
namespace {

using nlohmann::json;

/// One kubeconfig document while it is read. The first mistake is kept; what follows it reads as empty.
class Reader {
 public:
  Reader(const json& document, const std::string& path) : path_(path), root_(document, mistake_) {}

  Result<ApiConfig> read(const std::string& context);

 private:
  struct Entry {
    Field value;
    std::string where;  ///< `user "admin"`
  };

  /// The entry called `name` of the list `list`, whose entries hold their content under `kind`.
  Entry find(const char* list, const char* kind, const std::string& name);
  void read_cluster(const Entry& cluster, ApiConfig& config);
  void read_user(const Entry& user, ApiConfig& config);
  void refuse_keys(const Entry& entry, std::initializer_list<std::pair<const char*, const char*>> keys);

  /// `KEY-data` (base64), else the content of the file that `KEY` names, else empty.
  std::string content(const Entry& entry, const char* key);
  std::string full_path(const std::string& name) const;
  void complain(std::string what);

  const std::string& path_;
  std::optional<Error> mistake_;
  Field root_;
};

void Reader::complain(std::string what) {
  if (!mistake_) mistake_ = Error{std::move(what)};
}

std::string Reader::full_path(const std::string& name) const {
  return (std::filesystem::path(path_).parent_path() / name).string();
}

Reader::Entry Reader::find(const char* list, const char* kind, const std::string& name) {
  std::string known;
  for (const Field& entry : root_.member(list).items()) {
    const std::string entry_name = entry.member("name").text();
    if (entry_name == name) return {entry.member(kind), std::string(kind) + " " + quote(name)};
    known += (known.empty() ? "" : ", ") + quote(entry_name);
  }
  complain("no " + std::string(kind) + " is called " + quote(name) + "; known: " + (known.empty() ? "none" : known));
  return {root_.member(""), {}};
}

void Reader::refuse_keys(const Entry& entry, std::initializer_list<std::pair<const char*, const char*>> keys) {
  for (const auto& [key, why] : keys) {
    if (entry.value.member(key).present()) complain(entry.where + ": " + key + ": " + why);
  }
}

std::string Reader::content(const Entry& entry, const char* key) {
  const std::string data_key = std::string(key) + "-data";
  if (const std::string data = entry.value.member(data_key.c_str()).text(); !data.empty()) {
    std::optional<std::string> bytes = decode_base64(data);
    if (!bytes) complain(entry.where + ": " + data_key + " is not base64");
    return std::move(bytes).value_or("");
  }
  const std::string name = entry.value.member(key).text();
  if (name.empty()) return {};
  const Result<std::string> text = read_text_file(full_path(name));
  if (!text) {
    complain(entry.where + ": " + key + ": " + text.message());
    return {};
  }
  if (text->empty()) complain(entry.where + ": " + key + ": " + full_path(name) + " is empty");
  return *text;
}

void Reader::read_cluster(const Entry& cluster, ApiConfig& config) {
  refuse_keys(cluster, {{"proxy-url", "proxies are not supported; name an address that is reached directly"}});
  const std::string server = cluster.value.member("server").text();
  const Result<ServerAddress> address = parse_server_url(server);
  if (!address) {
    complain(cluster.where + ": " + (server.empty() ? "it has no server" : address.message()));
    return;
  }
  config.server = *address;
  config.ca_pem = content(cluster, "certificate-authority");
  config.tls_server_name = cluster.value.member("tls-server-name").text();
  config.verify_server = !cluster.value.member("insecure-skip-tls-verify").flag();
  if (!config.verify_server && !config.ca_pem.empty()) {
    complain(cluster.where + ": certificate-authority and insecure-skip-tls-verify exclude each other");
  }
}

void Reader::read_user(const Entry& user, ApiConfig& config) {
  constexpr const char* kInstead = "not supported; allowed: client-certificate with client-key, token, tokenFile";
  refuse_keys(user, {{"exec", kInstead},
                     {"auth-provider", kInstead},
                     {"username", kInstead},
                     {"password", kInstead},
                     {"as", "impersonation is not supported"},
                     {"as-uid", "impersonation is not supported"},
                     {"as-groups", "impersonation is not supported"},
                     {"as-user-extra", "impersonation is not supported"}});
  config.client_cert_pem = content(user, "client-certificate");
  config.client_key_pem = content(user, "client-key");
  if (config.client_cert_pem.empty() != config.client_key_pem.empty()) {
    complain(user.where + ": client-certificate and client-key go together; one of them is missing");
  }
  config.token = user.value.member("token").text();
  const std::string token_file = user.value.member("tokenFile").text();
  if (!token_file.empty()) config.token_file = full_path(token_file);
}

Result<ApiConfig> Reader::read(const std::string& context) {
  ApiConfig config;
  const std::string kind = root_.member("kind").text();
  if (!kind.empty() && kind != "Config") complain("kind must be Config, not " + quote(kind));
  const std::string name = context.empty() ? root_.member("current-context").text() : context;
  if (name.empty()) complain("it has no current-context; name one of its contexts");
  if (mistake_) return *mistake_;

  const Entry chosen = find("contexts", "context", name);
  if (mistake_) return *mistake_;
  config.default_namespace = chosen.value.member("namespace").text();
  const std::string cluster = chosen.value.member("cluster").text();
  const std::string user = chosen.value.member("user").text();
  if (cluster.empty()) complain(chosen.where + ": it has no cluster");
  if (mistake_) return *mistake_;
  read_cluster(find("clusters", "cluster", cluster), config);
  // Without a user one is anonymous, as towards `kubectl proxy`.
  if (!mistake_ && !user.empty()) read_user(find("users", "user", user), config);
  if (mistake_) return *mistake_;
  return config;
}

}  // namespace

Result<ApiConfig> parse_kubeconfig(const std::string& text, const std::string& path, const std::string& context) {
  std::optional<json> document;
  const Status read = read_yaml_text(text, path, [&](const json& found, int line) -> Status {
    if (document) return Error{path + ":" + std::to_string(line) + ": a kubeconfig is one document; this is a second"};
    document = found;
    return ok_status();
  });
  if (!read) return read.error();
  if (!document || document->is_null()) return Error{path + ": it is empty"};
  Result<ApiConfig> config = Reader(*document, path).read(context);
  if (!config) return Error{path + ": " + config.message()};
  return config;
}

Result<ApiConfig> read_kubeconfig(const std::string& path, const std::string& context) {
  const Result<std::string> text = read_text_file(path);
  if (!text) return text.error();
  return parse_kubeconfig(*text, path, context);
}

}  // namespace mortise::kube
