#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "scheduler/kube/client/api_client.h"
#include "tests/support/fake_api_server.h"

namespace mortise::test {

inline kube::ApiConfig config_of(const FakeApiServer& server) {
  kube::ApiConfig config;
  const Result<kube::ServerAddress> address = kube::parse_server_url(server.url());
  EXPECT_TRUE(address.ok()) << address.message();
  config.server = *address;
  return config;
}

inline std::unique_ptr<kube::ApiClient> make_client(const kube::ApiConfig& config,
                                                    const kube::ApiOptions& options = {}) {
  static const SteadyClock clock;
  Result<std::unique_ptr<kube::ApiClient>> client = kube::ApiClient::make(config, options, clock);
  EXPECT_TRUE(client.ok()) << client.message();
  return *std::move(client);
}

inline std::unique_ptr<kube::ApiClient> make_client(const FakeApiServer& server, const kube::ApiOptions& options = {}) {
  return make_client(config_of(server), options);
}

}  // namespace mortise::test
