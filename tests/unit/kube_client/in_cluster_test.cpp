#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "scheduler/kube/client/api_config.h"
#include "tests/unit/kube_client/test_folder.h"

namespace mortise::kube {
namespace {

using test::TestFolder;
using testing::HasSubstr;

class InCluster : public testing::Test {
 protected:
  void SetUp() override {
    set("10.96.0.1", "443");
    folder_.write("token", "abc\n");
    folder_.write("ca.crt", "CA");
    folder_.write("namespace", "mortise\n");
  }
  void TearDown() override {
    unsetenv("KUBERNETES_SERVICE_HOST");
    unsetenv("KUBERNETES_SERVICE_PORT");
  }
  static void set(const char* host, const char* port) {
    setenv("KUBERNETES_SERVICE_HOST", host, 1);
    setenv("KUBERNETES_SERVICE_PORT", port, 1);
  }

  TestFolder folder_;
};

TEST_F(InCluster, AddressAuthorityAndTokenFile) {
  const auto config = in_cluster_config(folder_.path());
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_TRUE(config->server.tls);
  EXPECT_EQ(config->server.authority(), "10.96.0.1:443");
  EXPECT_EQ(config->ca_pem, "CA");
  EXPECT_EQ(config->token_file, folder_.path() + "/token");
  EXPECT_EQ(config->default_namespace, "mortise");
}

TEST_F(InCluster, Ipv6HostComesWithoutBrackets) {
  set("fd00::1", "443");
  const auto config = in_cluster_config(folder_.path());
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->server.authority(), "[fd00::1]:443");
}

TEST_F(InCluster, WhatIsMissingIsNamed) {
  std::filesystem::remove(folder_.path() + "/namespace");
  EXPECT_TRUE(in_cluster_config(folder_.path()).ok());
  folder_.write("ca.crt", "");
  EXPECT_THAT(in_cluster_config(folder_.path()).message(), HasSubstr("ca.crt: is empty"));
  std::filesystem::remove(folder_.path() + "/ca.crt");
  EXPECT_THAT(in_cluster_config(folder_.path()).message(), HasSubstr("ca.crt: cannot be read"));
  std::filesystem::remove(folder_.path() + "/token");
  EXPECT_THAT(in_cluster_config(folder_.path()).message(), HasSubstr("token: cannot be read"));
  set("10.96.0.1", "no port");
  EXPECT_THAT(in_cluster_config(folder_.path()).message(), HasSubstr("KUBERNETES_SERVICE_HOST"));
  unsetenv("KUBERNETES_SERVICE_PORT");
  EXPECT_THAT(in_cluster_config(folder_.path()).message(), HasSubstr("not inside a cluster"));
}

}  // namespace
}  // namespace mortise::kube
