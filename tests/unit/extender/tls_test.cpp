#include "scheduler/extender/tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <ctime>
#include <fstream>

#include "scheduler/extender/http_server.h"
#include "tests/unit/extender/certificates.h"
#include "tests/unit/extender/raw_client.h"
#include "tests/unit/extender/test_cluster.h"

namespace mortise::extender {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::string kQuestion =
    R"({"Pod":{"metadata":{"name":"p","uid":"u1"},"spec":{"containers":[]}},"NodeNames":["n"]})";
const std::string kNamed = R"("NodeNames":["n"])";

/// What a client of OpenSSL's sees of the server.
class TlsClient {
 public:
  struct Options {
    const TestCertificate* server_ca = nullptr;
    const TestCertificate* own = nullptr;
    int newest = TLS1_3_VERSION;
  };
  TlsClient(const std::string& address, const Options& options)
      : plain_(address), context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free) {
    SSL_CTX* context = context_.get();
    SSL_CTX_set_max_proto_version(context, options.newest);
    SSL_CTX_set_security_level(context, 0);  // else the client itself refuses old versions
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), options.server_ca->x509());
    if (options.own != nullptr) {
      SSL_CTX_use_certificate(context, options.own->x509());
      SSL_CTX_use_PrivateKey(context, options.own->key());
    }
    ssl_ = SSL_new(context);
    SSL_set_fd(ssl_, plain_.fd());
    const std::string offered = std::string("\x02h2\x08http/1.1", 12);
    SSL_set_alpn_protos(ssl_, reinterpret_cast<const unsigned char*>(offered.data()), 12);
    connected_ = SSL_connect(ssl_) == 1;
  }
  ~TlsClient() { SSL_free(ssl_); }

  bool connected() const { return connected_; }
  std::string protocol() const {
    const unsigned char* chosen = nullptr;
    unsigned int length = 0;
    SSL_get0_alpn_selected(ssl_, &chosen, &length);
    return std::string(reinterpret_cast<const char*>(chosen), length);
  }
  std::string version() const { return SSL_get_version(ssl_); }
  std::string server_name() const {
    char text[64] = {};
    X509* certificate = SSL_get1_peer_certificate(ssl_);
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, text, sizeof text);
    X509_free(certificate);
    return text;
  }
  /// The status line and all after it, up to the end of a JSON document; empty when refused. In TLS 1.3 a client learns
  /// only here that its certificate is not taken.
  std::string post(const std::string& body) {
    const std::string text = post_text("/filter", body);
    if (SSL_write(ssl_, text.data(), static_cast<int>(text.size())) <= 0) return {};
    std::string answer;
    char chunk[16384];
    while (!answer.ends_with("\"Error\":\"\"}")) {
      const int count = SSL_read(ssl_, chunk, sizeof chunk);
      if (count <= 0) return {};
      answer.append(chunk, static_cast<std::size_t>(count));
    }
    return answer;
  }

 private:
  RawClient plain_;
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_;
  SSL* ssl_ = nullptr;
  bool connected_ = false;
};

class TlsTest : public testing::Test {
 protected:
  TlsTest() {
    const std::string base = testing::TempDir() + "mortise-tls-" + std::to_string(getpid()) + "-";
    files_ = {base + "cert.pem", base + "key.pem", ""};
    ca_file_ = base + "ca.pem";
    install(TestCertificate("first", &ca_));
  }
  void install(const TestCertificate& certificate) const {
    certificate.write_certificate(files_.certificate);
    certificate.write_key(files_.key);
  }
  void start() {
    auto loaded = TlsContext::load(files_);
    ASSERT_TRUE(loaded.ok()) << loaded.message();
    context_ = *std::move(loaded);
    auto started = HttpServer::start_scheduler(cluster_.service(), {"127.0.0.1", 0}, {.tls = context_.get()});
    ASSERT_TRUE(started.ok()) << started.message();
    server_ = *std::move(started);
  }
  void require_client_certificates() {
    ca_.write_certificate(ca_file_);
    files_.client_ca = ca_file_;
  }
  TlsClient::Options trusting() const { return {.server_ca = &ca_}; }

  TestCertificate ca_{"ca"};
  std::string ca_file_;
  TlsFiles files_;
  TestCluster cluster_;
  std::unique_ptr<TlsContext> context_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(TlsTest, TheVerbsAreServedOverTls12And13WithHttp11) {
  start();
  for (const auto& [newest, name] : {std::pair(TLS1_2_VERSION, "TLSv1.2"), std::pair(TLS1_3_VERSION, "TLSv1.3")}) {
    TlsClient client(server_->address(), {.server_ca = &ca_, .newest = newest});
    ASSERT_TRUE(client.connected()) << name;
    EXPECT_EQ(client.version(), name);
    EXPECT_EQ(client.protocol(), "http/1.1");
    EXPECT_THAT(client.post(kQuestion), HasSubstr(kNamed));
    EXPECT_THAT(client.post(kQuestion), HasSubstr(kNamed)) << "the second on the same connection";
  }
}

TEST_F(TlsTest, OlderVersionsAreRefused) {
  start();
  EXPECT_FALSE(TlsClient(server_->address(), {.server_ca = &ca_, .newest = TLS1_1_VERSION}).connected());
}

TEST_F(TlsTest, ARequestOfManyRecordsIsServed) {
  start();
  std::string names;
  for (int i = 0; i < 20'000; ++i) names += "\"node-" + std::to_string(i) + "\",";
  TlsClient client(server_->address(), trusting());
  const std::string answer =
      client.post(R"({"Pod":{"metadata":{"uid":"u"},"spec":{"containers":[]}},"NodeNames":[)" + names + "\"last\"]}");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(answer, HasSubstr("\"node-19999\",\"last\"]"));
}

TEST_F(TlsTest, WithAClientCaOnlyItsClientsAreServed) {
  require_client_certificates();
  start();
  EXPECT_EQ(TlsClient(server_->address(), trusting()).post(kQuestion), "") << "no certificate";
  const TestCertificate other_ca("another ca");
  const TestCertificate stranger("client", &other_ca);
  EXPECT_EQ(TlsClient(server_->address(), {.server_ca = &ca_, .own = &stranger}).post(kQuestion), "");
  const TestCertificate expired("client", &ca_, -60);
  EXPECT_EQ(TlsClient(server_->address(), {.server_ca = &ca_, .own = &expired}).post(kQuestion), "");
  const TestCertificate known("client", &ca_);
  for (const int newest : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClient client(server_->address(), {.server_ca = &ca_, .own = &known, .newest = newest});
    EXPECT_THAT(client.post(kQuestion), HasSubstr(kNamed));
  }
}

TEST_F(TlsTest, AChangedCertificateIsUsedForNewConnections) {
  start();
  TlsClient before(server_->address(), trusting());
  EXPECT_EQ(before.server_name(), "first");
  EXPECT_EQ(context_->reload_if_changed(), std::nullopt);
  install(TestCertificate("second", &ca_, 7200));
  const auto outcome = context_->reload_if_changed();
  ASSERT_TRUE(outcome.has_value());
  EXPECT_TRUE(outcome->ok()) << outcome->message();
  EXPECT_EQ(TlsClient(server_->address(), trusting()).server_name(), "second");
  EXPECT_THAT(before.post(kQuestion), HasSubstr(kNamed)) << "open connections go on";
  EXPECT_NEAR(static_cast<double>(context_->expires()), static_cast<double>(std::time(nullptr) + 7200), 300);
}

TEST_F(TlsTest, ABrokenNewFileKeepsTheOldOne) {
  start();
  TestCertificate("second", &ca_).write_certificate(files_.certificate);  // of another key
  auto outcome = context_->reload_if_changed();
  ASSERT_TRUE(outcome.has_value());
  ASSERT_FALSE(outcome->ok());
  EXPECT_THAT(outcome->message(), HasSubstr("--tls-key " + files_.key + ": "));
  EXPECT_EQ(context_->reload_if_changed(), std::nullopt) << "the same fault is reported once";
  EXPECT_EQ(TlsClient(server_->address(), trusting()).server_name(), "first");
  std::remove(files_.certificate.c_str());
  outcome = context_->reload_if_changed();
  ASSERT_TRUE(outcome.has_value());
  EXPECT_FALSE(outcome->ok());
  EXPECT_EQ(TlsClient(server_->address(), trusting()).server_name(), "first");
  install(TestCertificate("third", &ca_));
  outcome = context_->reload_if_changed();
  ASSERT_TRUE(outcome.has_value());
  EXPECT_TRUE(outcome->ok()) << outcome->message();
  EXPECT_EQ(TlsClient(server_->address(), trusting()).server_name(), "third");
}

TEST_F(TlsTest, AChangedClientCaCountsForNewConnections) {
  require_client_certificates();
  start();
  const TestCertificate other_ca("another ca");
  const TestCertificate newcomer("client", &other_ca);
  other_ca.write_certificate(ca_file_);
  ASSERT_TRUE(context_->reload().ok());
  EXPECT_THAT(TlsClient(server_->address(), {.server_ca = &ca_, .own = &newcomer}).post(kQuestion), HasSubstr(kNamed));
  const TestCertificate former("client", &ca_);
  EXPECT_EQ(TlsClient(server_->address(), {.server_ca = &ca_, .own = &former}).post(kQuestion), "");
}

TEST_F(TlsTest, WhatCannotBeLoadedIsOneLineWithTheFile) {
  TlsFiles missing = files_;
  missing.certificate += ".none";
  EXPECT_THAT(TlsContext::load(missing).message(), StartsWith("--tls-cert " + missing.certificate + ": "));
  TlsFiles swapped{files_.certificate, files_.certificate, ""};
  EXPECT_THAT(TlsContext::load(swapped).message(), StartsWith("--tls-key " + files_.certificate + ": "));
  std::ofstream(ca_file_) << "no PEM\n";
  EXPECT_THAT(TlsContext::load({files_.certificate, files_.key, ca_file_}).message(),
              StartsWith("--tls-client-ca " + ca_file_ + ": "));
}

TEST_F(TlsTest, PlainHttpIsToldThatThePortSpeaksHttps) {
  start();
  RawClient client(server_->address());
  ASSERT_TRUE(client.send(post_text("/filter", kQuestion)));
  EXPECT_EQ(client.receive().value_or(RawResponse{}).status, 400);
}

}  // namespace
}  // namespace mortise::extender
