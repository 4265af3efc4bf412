#include "scheduler/kube/client/tls_context.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>
#include <limits>

namespace mortise::kube {
namespace {

struct OpensslFree {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
template <class T>
using Owned = std::unique_ptr<T, OpensslFree>;

Owned<BIO> open_text(const std::string& text) {
  if (text.size() > std::numeric_limits<int>::max()) return nullptr;
  return Owned<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

/// OpenSSL would ask on the terminal for the passphrase of an encrypted key.
int no_passphrase(char*, int, int, void*) {
  return -1;
}

Error refused(const std::string& what) {
  return Error{what + ": " + tls_error_text()};
}

/// Reads PEM certificates and hands each to `use`, which takes no ownership; the number read.
template <class Use>
int each_certificate(const std::string& pem, const Use& use) {
  const Owned<BIO> bio = open_text(pem);
  int count = 0;
  while (bio) {
    const Owned<X509> certificate(PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, nullptr));
    if (!certificate) break;
    if (!use(certificate.get(), count++)) return -1;
  }
  ERR_clear_error();  // the end of the text is an error to the reader
  return count;
}

Status trust(SSL_CTX* context, const std::string& ca_pem) {
  if (ca_pem.empty()) {
    if (SSL_CTX_set_default_verify_paths(context) != 1) return refused("the system's authorities cannot be loaded");
    return ok_status();
  }
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  const int count =
      each_certificate(ca_pem, [&](X509* authority, int) { return X509_STORE_add_cert(store, authority) == 1; });
  if (count == 0) return Error{"certificate-authority holds no PEM certificate"};
  if (count < 0) return refused("certificate-authority cannot be used");
  // As Kubernetes' own clients do: an authority that was named is trusted even when it is not a root itself.
  X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), X509_V_FLAG_PARTIAL_CHAIN);
  return ok_status();
}

/// The certificate with its chain, and its key.
Status identify(SSL_CTX* context, const std::string& cert_pem, const std::string& key_pem) {
  if (cert_pem.empty()) return ok_status();
  const int count = each_certificate(cert_pem, [&](X509* certificate, int at) {
    return (at == 0 ? SSL_CTX_use_certificate(context, certificate) : SSL_CTX_add1_chain_cert(context, certificate)) ==
           1;
  });
  if (count == 0) return Error{"client-certificate holds no PEM certificate"};
  if (count < 0) return refused("client-certificate cannot be used");
  const Owned<BIO> bio = open_text(key_pem);
  const Owned<EVP_PKEY> key(bio ? PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr) : nullptr);
  if (!key) return refused("client-key is not an unencrypted PEM private key");
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1)
    return refused("client-key does not belong to client-certificate");
  return ok_status();
}

}  // namespace

std::string tls_error_text() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "unknown TLS error";
  const char* reason = ERR_reason_error_string(code);
  if (reason != nullptr) return reason;
  std::array<char, 256> text{};
  ERR_error_string_n(code, text.data(), text.size());
  return text.data();
}

void TlsContext::Free::operator()(ssl_ctx_st* context) const {
  SSL_CTX_free(context);
}

TlsContext::TlsContext(ssl_ctx_st* context, const ApiConfig& config)
    : context_(context),
      name_(config.tls_server_name.empty() ? config.server.host : config.tls_server_name),
      verify_(config.verify_server) {}

Result<std::shared_ptr<const TlsContext>> TlsContext::make(const ApiConfig& config) {
  ERR_clear_error();
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  if (context == nullptr) return refused("TLS cannot be set up");
  const std::shared_ptr<const TlsContext> made(new TlsContext(context, config));
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_verify(context, config.verify_server ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  // Or the server might choose HTTP/2, which httplib does not speak.
  static constexpr std::array<unsigned char, 9> kHttp11 = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  SSL_CTX_set_alpn_protos(context, kHttp11.data(), kHttp11.size());
  if (config.verify_server) {
    if (const Status trusted = trust(context, config.ca_pem); !trusted) return trusted.error();
  }
  if (const Status known = identify(context, config.client_cert_pem, config.client_key_pem); !known) {
    return known.error();
  }
  return made;
}

ssl_st* TlsContext::new_session() const {
  SSL* session = SSL_new(context_.get());
  if (session == nullptr) return nullptr;
  X509_VERIFY_PARAM* expected = SSL_get0_param(session);
  // The name in the subject was given up long ago; only the subject's alternative names count.
  X509_VERIFY_PARAM_set_hostflags(expected, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  const bool is_address = X509_VERIFY_PARAM_set1_ip_asc(expected, name_.c_str()) == 1;
  const bool named = is_address || (SSL_set1_host(session, name_.c_str()) == 1 &&
                                    SSL_set_tlsext_host_name(session, name_.c_str()) == 1);
  ERR_clear_error();
  if (verify_ && !named) {
    SSL_free(session);
    return nullptr;
  }
  return session;
}

}  // namespace mortise::kube
