#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <memory>
#include <string>

namespace mortise::extender {

/// A key and a certificate for it, made on the spot.
class TestCertificate {
 public:
  /// Signed by `issuer`, or by itself when that is null (a CA then). Valid for an hour from now, or until
  /// `ends_in` seconds from now.
  explicit TestCertificate(const std::string& name, const TestCertificate* issuer = nullptr, long ends_in = 3600)
      : key_(EVP_EC_gen("P-256"), EVP_PKEY_free), certificate_(X509_new(), X509_free) {
    X509* made = certificate_.get();
    static long serial = 1;
    X509_set_version(made, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(made), serial++);
    X509_gmtime_adj(X509_getm_notBefore(made), -3600);
    X509_gmtime_adj(X509_getm_notAfter(made), ends_in);
    X509_NAME* subject = X509_get_subject_name(made);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(name.c_str()), -1,
                               -1, 0);
    X509_set_issuer_name(made, issuer != nullptr ? X509_get_subject_name(issuer->certificate_.get()) : subject);
    X509_set_pubkey(made, key_.get());
    if (issuer == nullptr) add_extension(NID_basic_constraints, "critical,CA:TRUE");
    X509_sign(made, issuer != nullptr ? issuer->key_.get() : key_.get(), EVP_sha256());
  }

  /// PEM files; written beside the path and moved over it, as tools that renew certificates do.
  void write_certificate(const std::string& path) const {
    replace(path, [this](std::FILE* file) { PEM_write_X509(file, certificate_.get()); });
  }
  void write_key(const std::string& path) const {
    replace(path,
            [this](std::FILE* file) { PEM_write_PrivateKey(file, key_.get(), nullptr, nullptr, 0, nullptr, nullptr); });
  }

  EVP_PKEY* key() const { return key_.get(); }
  X509* x509() const { return certificate_.get(); }

 private:
  void add_extension(int kind, const char* value) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value);
    X509_add_ext(certificate_.get(), extension, -1);
    X509_EXTENSION_free(extension);
  }
  template <class Write>
  static void replace(const std::string& path, const Write& write) {
    std::FILE* file = std::fopen((path + ".new").c_str(), "w");
    write(file);
    std::fclose(file);
    std::rename((path + ".new").c_str(), path.c_str());
  }

  std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key_;
  std::unique_ptr<X509, void (*)(X509*)> certificate_;
};

}  // namespace mortise::extender
