#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "scheduler/kube/client/tls_context.h"
#include "tests/support/test_pki.h"
#include "tests/unit/kube_client/test_client.h"

namespace mortise::kube {
namespace {

using test::FakeApiServer;
using test::FakeExchange;
using test::FakeRequest;
using test::Identity;
using test::make_client;
using test::TestAuthority;
using testing::HasSubstr;

void answer_ok(const FakeRequest&, FakeExchange& exchange) {
  exchange.respond(200, "{}");
}

/// A server for 127.0.0.1 and kubernetes.default.svc, and a client configuration that trusts it.
class Tls : public testing::Test {
 protected:
  Tls() { config_ = test::config_of(server_); }
  void SetUp() override { config_.ca_pem = authority_.cert_pem(); }

  /// The error of a call that must not have reached the server.
  std::string refused(const ApiConfig& config) {
    const ApiResult result = make_client(config)->post("/x", "{}");
    if (result.transport_error() == nullptr) return "it was answered: " + result.describe();
    EXPECT_FALSE(result.transport_error()->may_have_arrived);
    return result.describe();
  }

  const TestAuthority authority_;
  const Identity identity_ = authority_.issue("api", "IP:127.0.0.1,DNS:kubernetes.default.svc");
  FakeApiServer server_{answer_ok, {.tls = test::server_context(identity_)}};
  ApiConfig config_;
};

TEST_F(Tls, ServerOfTheGivenAuthorityIsTrusted) {
  const auto client = make_client(config_);
  for (int i = 0; i < 3; ++i) {
    const ApiResult result = client->get("/x");
    EXPECT_TRUE(result.ok()) << result.describe();
  }
  EXPECT_EQ(server_.connections(), 1);
}

TEST_F(Tls, ServerOfAnotherAuthorityIsRefused) {
  config_.ca_pem = TestAuthority("another").cert_pem();
  EXPECT_THAT(refused(config_), HasSubstr("certificate is refused: unable to get local issuer certificate"));
  EXPECT_TRUE(server_.asked().empty());
}

TEST_F(Tls, WithoutAnAuthorityTheSystemsAreTrustedAndNotOurs) {
  config_.ca_pem = "";
  EXPECT_THAT(refused(config_), HasSubstr("certificate is refused"));
}

TEST_F(Tls, ServerOfAnotherNameIsRefused) {
  config_.server.host = "localhost";
  EXPECT_THAT(refused(config_), HasSubstr("hostname mismatch"));
  FakeApiServer other(answer_ok, {.tls = test::server_context(authority_.issue("127.0.0.1", "IP:127.0.0.2"))});
  config_.server = test::config_of(other).server;
  EXPECT_THAT(refused(config_), HasSubstr("IP address mismatch"));
}

TEST_F(Tls, TheCommonNameIsNoName) {
  FakeApiServer other(answer_ok, {.tls = test::server_context(authority_.issue("localhost", ""))});
  config_.server = test::config_of(other).server;
  config_.server.host = "localhost";
  EXPECT_THAT(refused(config_), HasSubstr("hostname mismatch"));
}

TEST_F(Tls, TlsServerNameIsWhatTheCertificateMustCarry) {
  config_.tls_server_name = "kubernetes.default.svc";
  EXPECT_TRUE(make_client(config_)->get("/x").ok());
  config_.tls_server_name = "kubernetes";
  EXPECT_THAT(refused(config_), HasSubstr("hostname mismatch"));
}

TEST_F(Tls, VerificationIsLeftOutOnlyOnRequest) {
  config_.ca_pem = "";
  config_.server.host = "localhost";
  config_.verify_server = false;
  EXPECT_TRUE(make_client(config_)->get("/x").ok());
}

TEST_F(Tls, APlainServerIsNoTlsServer) {
  FakeApiServer plain([](const FakeRequest&, FakeExchange& exchange) { exchange.drop(); });
  ApiConfig config = config_;
  config.server.port = plain.port();
  CallOptions call;
  call.timeout = kSecond / 20;  // it waits for a request, we wait for its handshake
  const ApiResult result = make_client(config)->get("/x", call);
  ASSERT_NE(result.transport_error(), nullptr);
  EXPECT_FALSE(result.transport_error()->may_have_arrived);
  EXPECT_THAT(result.describe(), HasSubstr("no TLS connection to 127.0.0.1:"));
}

TEST_F(Tls, TheClientCertificateIsShown) {
  const TestAuthority clients("clients");
  FakeApiServer strict(answer_ok, {.tls = test::server_context(identity_, clients.cert_pem())});
  config_.server = test::config_of(strict).server;
  const Identity us = clients.issue("mortise", "");
  ApiConfig with = config_;
  with.client_cert_pem = us.cert_pem;
  with.client_key_pem = us.key_pem;
  const ApiResult result = make_client(with)->get("/x");
  EXPECT_TRUE(result.ok()) << result.describe();
  EXPECT_NE(make_client(config_)->get("/x").transport_error(), nullptr);
  EXPECT_EQ(strict.asked().size(), 1U);
}

TEST_F(Tls, ARequestThatDidNotLeaveInFullCannotHaveArrivedAndRaisesNoSignal) {
  FakeApiServer abrupt([](const FakeRequest&, FakeExchange& exchange) { exchange.drop(); },
                       {.tls = test::server_context(identity_), .answer_before_body = true});
  config_.server = test::config_of(abrupt).server;
  const ApiResult result = make_client(config_)->post("/x", std::string(std::size_t{64} << 20, 'x'));
  ASSERT_NE(result.transport_error(), nullptr);
  EXPECT_FALSE(result.transport_error()->may_have_arrived);
}

TEST_F(Tls, AStaleConnectionIsReplaced) {
  const auto client = make_client(config_);
  EXPECT_TRUE(client->get("/x").ok());
  server_.cut_connections();
  const ApiResult result = client->get("/x");
  EXPECT_TRUE(result.ok()) << result.describe();
  EXPECT_EQ(server_.connections(), 2);
}

TEST_F(Tls, MaterialThatCannotBeUsedIsRefusedBeforeConnecting) {
  const auto why = [&](const auto& spoil) {
    ApiConfig config = config_;
    const Identity us = authority_.issue("mortise", "");
    config.client_cert_pem = us.cert_pem;
    config.client_key_pem = us.key_pem;
    spoil(config);
    const auto made = TlsContext::make(config);
    return made.ok() ? "nothing" : made.message();
  };
  EXPECT_EQ(why([](ApiConfig&) {}), "nothing");
  EXPECT_THAT(why([](ApiConfig& c) { c.ca_pem = "no PEM"; }), HasSubstr("certificate-authority holds no PEM"));
  EXPECT_THAT(why([](ApiConfig& c) { c.client_cert_pem = "no PEM"; }), HasSubstr("client-certificate holds no PEM"));
  EXPECT_THAT(why([](ApiConfig& c) { c.client_key_pem = "no PEM"; }), HasSubstr("client-key is not an unencrypted"));
  EXPECT_THAT(why([&](ApiConfig& c) { c.client_key_pem = authority_.issue("x", "").key_pem; }),
              HasSubstr("client-key does not belong to client-certificate"));
  // Reading it must not ask for the passphrase on the terminal.
  EXPECT_THAT(why([](ApiConfig& c) { c.client_key_pem = test::encrypted(c.client_key_pem); }),
              HasSubstr("client-key is not an unencrypted"));
}

}  // namespace
}  // namespace mortise::kube
