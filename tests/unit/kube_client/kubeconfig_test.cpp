#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "scheduler/kube/client/api_config.h"
#include "scheduler/kube/client/base64.h"
#include "tests/unit/kube_client/test_folder.h"

namespace mortise::kube {
namespace {

using test::TestFolder;
using testing::AllOf;
using testing::HasSubstr;

// base64 of "CA", "CERT", "KEY": RFC 4648.
constexpr const char* kTwoContexts = R"(
apiVersion: v1
kind: Config
preferences: {}
current-context: prod
clusters:
- name: c1
  cluster: {server: "https://10.0.0.1:6443", certificate-authority-data: Q0E=, tls-server-name: kubernetes}
- name: c2
  cluster: {server: http://127.0.0.1:8001}
users:
- name: admin
  user: {client-certificate-data: Q0VSVA==, client-key-data: S0VZ}
- name: robot
  user: {token: abc.def}
contexts:
- name: prod
  context: {cluster: c1, user: admin, namespace: ml}
- name: proxy
  context: {cluster: c2, user: ""}
- name: robot@prod
  context: {cluster: c1, user: robot}
)";

Result<ApiConfig> parse(const std::string& text, const std::string& context = {}) {
  return parse_kubeconfig(text, "dir/config", context);
}

/// A kubeconfig with one of everything; the cluster and the user as given.
std::string with(const std::string& cluster, const std::string& user) {
  return "current-context: x\nclusters: [{name: c, cluster: " + cluster + "}]\nusers: [{name: u, user: " + user +
         "}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n";
}

constexpr const char* kCluster = "{server: 'https://h'}";

TEST(Kubeconfig, CurrentContextWithInlineData) {
  const auto config = parse(kTwoContexts);
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->server.authority(), "10.0.0.1:6443");
  EXPECT_EQ(config->ca_pem, "CA");
  EXPECT_EQ(config->tls_server_name, "kubernetes");
  EXPECT_EQ(config->client_cert_pem, "CERT");
  EXPECT_EQ(config->client_key_pem, "KEY");
  EXPECT_EQ(config->default_namespace, "ml");
  EXPECT_TRUE(config->verify_server);
}

TEST(Kubeconfig, NamedContext) {
  const auto proxy = parse(kTwoContexts, "proxy");
  ASSERT_TRUE(proxy.ok()) << proxy.message();
  EXPECT_FALSE(proxy->server.tls);
  EXPECT_EQ(proxy->token, "");
  EXPECT_EQ(proxy->client_cert_pem, "");
  const auto robot = parse(kTwoContexts, "robot@prod");
  ASSERT_TRUE(robot.ok()) << robot.message();
  EXPECT_EQ(robot->token, "abc.def");
}

TEST(Kubeconfig, FilesAreRelativeToItsFolder) {
  const TestFolder folder;
  folder.write("ca.crt", "THE CA");
  folder.write("me.crt", "THE CERT");
  folder.write("me.key", "THE KEY");
  folder.write("config",
               with("{server: 'https://h', certificate-authority: ca.crt}",
                    "{client-certificate: me.crt, client-key: " + folder.path() + "/me.key, tokenFile: tok}"));
  const auto config = read_kubeconfig(folder.path() + "/config");
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->ca_pem, "THE CA");
  EXPECT_EQ(config->client_cert_pem, "THE CERT");
  EXPECT_EQ(config->client_key_pem, "THE KEY");
  EXPECT_EQ(config->token_file, folder.path() + "/tok");
}

TEST(Kubeconfig, DataGoesBeforeFiles) {
  const auto config =
      parse(with("{server: 'https://h', certificate-authority: /nowhere, certificate-authority-data: Q0E=}", "{}"));
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->ca_pem, "CA");
}

TEST(Kubeconfig, JsonIsReadToo) {
  const auto config = parse(R"({"current-context":"x","clusters":[{"name":"c","cluster":{"server":"https://h:1"}}],
    "users":[{"name":"u","user":{"token":"t"}}],"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}]})");
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->server.port, 1);
}

TEST(Kubeconfig, UnverifiedOnlyWhenItSaysSo) {
  const auto config = parse(with("{server: 'https://h', insecure-skip-tls-verify: true}", "{}"));
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_FALSE(config->verify_server);
  const auto both =
      parse(with("{server: 'https://h', insecure-skip-tls-verify: true, certificate-authority-data: Q0E=}", "{}"));
  ASSERT_FALSE(both.ok());
  EXPECT_THAT(both.message(), HasSubstr("exclude each other"));
}

TEST(Kubeconfig, WhatNeedsAnotherProgramIsRefusedByName) {
  for (const char* key :
       {"exec", "auth-provider", "username", "password", "as", "as-uid", "as-groups", "as-user-extra"}) {
    const auto config = parse(with(kCluster, std::string("{token: t, ") + key + ": {a: b}}"));
    ASSERT_FALSE(config.ok()) << key;
    EXPECT_THAT(config.message(),
                AllOf(HasSubstr("dir/config: user \"u\": " + std::string(key) + ": "), HasSubstr("not supported")));
  }
  const auto proxy = parse(with("{server: 'https://h', proxy-url: 'http://p'}", "{}"));
  ASSERT_FALSE(proxy.ok());
  EXPECT_THAT(proxy.message(), HasSubstr("cluster \"c\": proxy-url"));
}

TEST(Kubeconfig, EveryMistakeIsOneLineThatNamesTheFile) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "it is empty"},
      {"{", "not valid YAML"},
      {"[]", "must be an object"},
      {"kind: Pod", "kind must be Config"},
      {"kind: Config", "current-context"},
      {"current-context: y\ncontexts: [{name: a}, {name: b}]", "no context is called \"y\"; known: \"a\", \"b\""},
      {"current-context: x\ncontexts: [{name: x, context: {}}]", "context \"x\": it has no cluster"},
      {"current-context: x\ncontexts: [{name: x, context: {cluster: c}}]", "no cluster is called \"c\"; known: none"},
      {"current-context: x\nclusters: [{name: c, cluster: {server: h}}]\n"
       "contexts: [{name: x, context: {cluster: c, user: u}}]",
       "no user is called \"u\""},
      {with("{}", "{}"), "cluster \"c\": it has no server"},
      {with("{server: 'ftp://h'}", "{}"), "allowed: https://"},
      {with("{server: 'https://h', certificate-authority-data: '*'}", "{}"),
       "certificate-authority-data is not base64"},
      {with("{server: 'https://h', certificate-authority: /nowhere/ca}", "{}"), "/nowhere/ca: cannot be read"},
      {with(kCluster, "{client-certificate-data: Q0VSVA==}"), "go together"},
      {with(kCluster, "{token: [1]}"), "must be a string"},
      {with(kCluster, "{}") + "---\n{}\n", "second"},
      {"a: &x 1\nb: *x\n", "aliases"},
  };
  for (const auto& [text, what] : cases) {
    const auto config = parse(text);
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_THAT(config.message(), AllOf(testing::StartsWith("dir/config:"), HasSubstr(what)));
    EXPECT_EQ(config.message().find('\n'), std::string::npos) << config.message();
  }
  EXPECT_THAT(read_kubeconfig("/nowhere/config").message(), HasSubstr("/nowhere/config: cannot be read"));
}

TEST(Kubeconfig, AnEmptyAuthorityFileDoesNotMeanTheSystemsAuthorities) {
  const TestFolder folder;
  folder.write("ca.crt", "");
  folder.write("config", with("{server: 'https://h', certificate-authority: ca.crt}", "{}"));
  const auto config = read_kubeconfig(folder.path() + "/config");
  ASSERT_FALSE(config.ok());
  EXPECT_THAT(config.message(), HasSubstr("ca.crt is empty"));
}

// The test vectors of RFC 4648, section 10.
TEST(Base64, VectorsOfTheStandard) {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"Zg==", "f"},
                                                         {"Zm8=", "fo"},
                                                         {"Zm9v", "foo"},
                                                         {"Zm9vYg==", "foob"},
                                                         {"Zm9vYmE=", "fooba"},
                                                         {"Zm9vYmFy", "foobar"}};
  for (const auto& [text, bytes] : vectors) EXPECT_EQ(decode_base64(text), bytes) << text;
  EXPECT_EQ(decode_base64("Zm9v\r\nYmFy\n"), "foobar");
}

TEST(Base64, AnythingElseIsRefused) {
  for (const char* text :
       {"Z", "Zg", "Zg=", "Zg===", "=", "====", "Zm9v YmFy", "Zm9v*mFy", "Zg==Zg==", "Z=g=", "Zm-_"}) {
    EXPECT_EQ(decode_base64(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace mortise::kube
