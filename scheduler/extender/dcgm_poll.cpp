#include "scheduler/extender/dcgm_poll.h"

#include <string_view>
#include <utility>

#include "scheduler/base/quote.h"

namespace mortise::extender {
namespace {

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (plain) {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded.append({'%', kDigits[byte / 16], kDigits[byte % 16]});
    }
  }
  return encoded;
}

}  // namespace

Result<std::unique_ptr<DcgmPoll>> DcgmPoll::make(const std::string& url, const Clock& clock) {
  kube::ApiConfig config;
  const Result<kube::ServerAddress> server = kube::parse_server_url(url);
  if (!server.ok() || url.find("://") == std::string::npos) {
    return Error{quote(url) + " is no address; allowed: http://HOST[:PORT][/PATH] or https://HOST[:PORT][/PATH]"};
  }
  config.server = *server;
  Result<std::unique_ptr<kube::ApiClient>> client = kube::ApiClient::make(
      config, {.request_timeout = 10 * kSecond, .max_response_bytes = std::size_t{64} << 20, .max_idle_connections = 1},
      clock);
  if (!client.ok()) return client.error();
  return std::unique_ptr<DcgmPoll>(new DcgmPoll(*std::move(client)));
}

Result<std::vector<kube::GpuSample>> DcgmPoll::ask(const std::stop_token& stop) {
  const kube::ApiResult answer =
      client_->get("/api/v1/query?query=" + percent_encoded(kube::kGpuSamplesQuery), {.timeout = {}, .stop = stop});
  if (!answer.ok()) return Error{answer.describe()};
  return kube::parse_gpu_samples(answer.response()->body);
}

}  // namespace mortise::extender
