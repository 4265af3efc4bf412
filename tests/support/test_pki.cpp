#include "tests/support/test_pki.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <stdexcept>

namespace mortise::test {
namespace {

struct Free {
  void operator()(evp_pkey_st* key) const { EVP_PKEY_free(key); }
  void operator()(x509_st* certificate) const { X509_free(certificate); }
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using Key = std::unique_ptr<evp_pkey_st, Free>;
using Certificate = std::unique_ptr<x509_st, Free>;
using Text = std::unique_ptr<BIO, Free>;

void need(bool done) {
  if (!done) throw std::runtime_error("OpenSSL cannot make a test certificate");
}

std::string contents(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

std::string pem(X509* certificate) {
  const Text out(BIO_new(BIO_s_mem()));
  need(PEM_write_bio_X509(out.get(), certificate) == 1);
  return contents(out.get());
}

std::string pem(EVP_PKEY* key) {
  const Text out(BIO_new(BIO_s_mem()));
  need(PEM_write_bio_PrivateKey(out.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
  return contents(out.get());
}

void add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  need(extension != nullptr && X509_add_ext(certificate, extension, -1) == 1);
  X509_EXTENSION_free(extension);
}

Certificate make_certificate(const std::string& common_name, EVP_PKEY* key, X509* issuer) {
  static long serial = 0;
  Certificate certificate(X509_new());
  X509* made = certificate.get();
  X509_set_version(made, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(made), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(made), -3600);
  X509_gmtime_adj(X509_getm_notAfter(made), 24L * 3600);
  X509_set_pubkey(made, key);
  X509_NAME* name = X509_get_subject_name(made);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(common_name.c_str()), -1,
                             -1, 0);
  X509_set_issuer_name(made, issuer == nullptr ? name : X509_get_subject_name(issuer));
  return certificate;
}

}  // namespace

struct TestAuthority::Keys {
  Key key;
  Certificate certificate;
};

TestAuthority::TestAuthority(const std::string& name) : keys_(std::make_unique<Keys>()) {
  keys_->key = Key(EVP_EC_gen("P-256"));
  need(keys_->key != nullptr);
  keys_->certificate = make_certificate(name, keys_->key.get(), nullptr);
  X509* self = keys_->certificate.get();
  add_extension(self, self, NID_basic_constraints, "critical,CA:TRUE");
  add_extension(self, self, NID_key_usage, "critical,keyCertSign");
  need(X509_sign(self, keys_->key.get(), EVP_sha256()) > 0);
  cert_pem_ = pem(self);
}

TestAuthority::~TestAuthority() = default;

Identity TestAuthority::issue(const std::string& common_name, const std::string& alternative_names) const {
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate = make_certificate(common_name, key.get(), keys_->certificate.get());
  if (!alternative_names.empty()) {
    add_extension(certificate.get(), keys_->certificate.get(), NID_subject_alt_name, alternative_names);
  }
  need(X509_sign(certificate.get(), keys_->key.get(), EVP_sha256()) > 0);
  return {pem(certificate.get()), pem(key.get())};
}

std::string encrypted(const std::string& key_pem) {
  const Text in(BIO_new_mem_buf(key_pem.data(), static_cast<int>(key_pem.size())));
  const Key key(PEM_read_bio_PrivateKey(in.get(), nullptr, nullptr, nullptr));
  const Text out(BIO_new(BIO_s_mem()));
  const std::string passphrase = "secret";
  need(PEM_write_bio_PrivateKey(out.get(), key.get(), EVP_aes_128_cbc(),
                                reinterpret_cast<const unsigned char*>(passphrase.data()),
                                static_cast<int>(passphrase.size()), nullptr, nullptr) == 1);
  return contents(out.get());
}

ssl_ctx_st* server_context(const Identity& identity, const std::string& client_ca_pem) {
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  const Text cert_text(BIO_new_mem_buf(identity.cert_pem.data(), static_cast<int>(identity.cert_pem.size())));
  const Certificate certificate(PEM_read_bio_X509(cert_text.get(), nullptr, nullptr, nullptr));
  const Text key_text(BIO_new_mem_buf(identity.key_pem.data(), static_cast<int>(identity.key_pem.size())));
  const Key key(PEM_read_bio_PrivateKey(key_text.get(), nullptr, nullptr, nullptr));
  need(SSL_CTX_use_certificate(context, certificate.get()) == 1 && SSL_CTX_use_PrivateKey(context, key.get()) == 1);
  if (!client_ca_pem.empty()) {
    const Text ca_text(BIO_new_mem_buf(client_ca_pem.data(), static_cast<int>(client_ca_pem.size())));
    const Certificate authority(PEM_read_bio_X509(ca_text.get(), nullptr, nullptr, nullptr));
    need(X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority.get()) == 1);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  return context;
}

}  // namespace mortise::test
