#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/kube/client/api_config.h"

namespace mortise::kube {
namespace {

ServerAddress parsed(const char* url) {
  const Result<ServerAddress> server = parse_server_url(url);
  EXPECT_TRUE(server.ok()) << url << ": " << server.message();
  return server.ok() ? *server : ServerAddress{};
}

TEST(ServerUrl, NameAndPort) {
  const ServerAddress server = parsed("https://api.example.com:6443");
  EXPECT_TRUE(server.tls);
  EXPECT_EQ(server.host, "api.example.com");
  EXPECT_EQ(server.port, 6443);
  EXPECT_EQ(server.base_path, "");
  EXPECT_EQ(server.authority(), "api.example.com:6443");
}

TEST(ServerUrl, Ipv6IsBracketedInTextOnly) {
  const ServerAddress server = parsed("https://[fd00::1]:6443/");
  EXPECT_EQ(server.host, "fd00::1");
  EXPECT_EQ(server.port, 6443);
  EXPECT_EQ(server.authority(), "[fd00::1]:6443");
  EXPECT_EQ(parsed("https://[::1]").port, 443);
}

TEST(ServerUrl, PlainHttpOfKubectlProxy) {
  const ServerAddress server = parsed("http://127.0.0.1:8001");
  EXPECT_FALSE(server.tls);
  EXPECT_EQ(server.port, 8001);
  EXPECT_EQ(parsed("http://localhost").port, 80);
}

TEST(ServerUrl, WithoutSchemeIsHttps) {
  const ServerAddress server = parsed("10.0.0.1:6443");
  EXPECT_TRUE(server.tls);
  EXPECT_EQ(server.host, "10.0.0.1");
  EXPECT_EQ(parsed("localhost").port, 443);
}

TEST(ServerUrl, PathOfAServerBehindAProxyIsKept) {
  const ServerAddress server = parsed("https://rancher.example.com/k8s/clusters/c-1/");
  EXPECT_EQ(server.port, 443);
  EXPECT_EQ(server.base_path, "/k8s/clusters/c-1");
}

TEST(ServerUrl, WhatIsNoAddressIsRefusedWithTheFormsAllowed) {
  for (const char* url : {"",
                          "https://",
                          "ftp://host",
                          "unix:///var/run/api.sock",
                          "https://host:0",
                          "https://host:65536",
                          "https://host:port",
                          "https://host:",
                          "https://fd00::1:6443",
                          "https://[fd00::1",
                          "https://[]",
                          "https://[host]",
                          "https://[::1]x",
                          "https://user@host",
                          "https://host?x=1",
                          "https://host/#a",
                          "https://ho st",
                          "https://host\r\nX: y",
                          "https:///path",
                          "https://:443"}) {
    const Result<ServerAddress> server = parse_server_url(url);
    ASSERT_FALSE(server.ok()) << url;
    EXPECT_THAT(server.message(), testing::HasSubstr("allowed: https://HOST[:PORT]")) << url;
    EXPECT_EQ(server.message().find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace mortise::kube
