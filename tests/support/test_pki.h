#pragma once

#include <memory>
#include <string>

struct ssl_ctx_st;
struct evp_pkey_st;
struct x509_st;

namespace mortise::test {

/// A certificate and its key, as PEM.
struct Identity {
  std::string cert_pem;
  std::string key_pem;
};

/// A certificate authority that lives as long as the test.
class TestAuthority {
 public:
  explicit TestAuthority(const std::string& name = "test authority");
  ~TestAuthority();

  const std::string& cert_pem() const { return cert_pem_; }
  /// `alternative_names` as OpenSSL writes them: `IP:127.0.0.1,DNS:kubernetes`; empty: none.
  Identity issue(const std::string& common_name, const std::string& alternative_names) const;

 private:
  struct Keys;
  std::unique_ptr<Keys> keys_;
  std::string cert_pem_;
};

/// The same key, only behind a passphrase.
std::string encrypted(const std::string& key_pem);

/// The server's side of TLS. With `client_ca_pem`, clients must show a certificate of that authority.
ssl_ctx_st* server_context(const Identity& identity, const std::string& client_ca_pem = {});

}  // namespace mortise::test
