#include "scheduler/extender/endpoint.h"

#include <charconv>

namespace mortise::extender {

Result<Endpoint> parse_endpoint(std::string_view text) {
  const auto refuse = [&] {
    return Error{"'" + std::string(text) + "' is not ADDR:PORT (e.g. 127.0.0.1:8888 or [::1]:8888, port 0 to 65535)"};
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return refuse();
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return refuse();
  }
  Endpoint endpoint{std::string(host), -1};
  const auto parsed = std::from_chars(port.data(), port.data() + port.size(), endpoint.port);
  if (host.empty() || port.empty() || parsed.ec != std::errc() || parsed.ptr != port.data() + port.size() ||
      endpoint.port < 0 || endpoint.port > 65535) {
    return refuse();
  }
  return endpoint;
}

}  // namespace mortise::extender
