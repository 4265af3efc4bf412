#include "scheduler/extender/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <string_view>
#include <utility>

namespace mortise::extender {
namespace {

constexpr std::string_view kSpeaksHttps =
    "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nthis port speaks HTTPS\n";

// --- OpenSSL's way to our socket, whose deadline holds for every byte of a record or a handshake ----------------

TlsLink& link_of(BIO* bio) {
  return *static_cast<TlsLink*>(BIO_get_data(bio));
}

int bio_read(BIO* bio, char* to, int size) {
  BIO_clear_retry_flags(bio);
  return static_cast<int>(link_of(bio).receive(to, static_cast<std::size_t>(size)));
}

int bio_write(BIO* bio, const char* from, int size) {
  BIO_clear_retry_flags(bio);
  return link_of(bio).send(from, static_cast<std::size_t>(size)) ? size : -1;
}

long bio_control(BIO* bio, int command, long, void*) {
  return command == BIO_CTRL_FLUSH && link_of(bio).flush() ? 1 : 0;
}

const BIO_METHOD* socket_method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "mortise socket");
    BIO_meth_set_read(made, bio_read);
    BIO_meth_set_write(made, bio_write);
    BIO_meth_set_ctrl(made, bio_control);
    return made;
  }();
  return method;
}

// --- loading ----------------------------------------------------------------------------------------------------

std::string reason_of_failure() {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : "not readable as PEM";
}

Error refuse(std::string_view flag, const std::string& file) {
  return Error{std::string(flag) + " " + file + ": " + reason_of_failure()};
}

/// Without it OpenSSL would ask for the passphrase of an encrypted key on the terminal.
int no_passphrase(char*, int, int, void*) {
  return -1;
}

/// Go's client offers HTTP/2, too, and goes on with what is chosen here.
int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* length, const unsigned char* offered,
                    unsigned int offered_length, void*) {
  static constexpr std::array<unsigned char, 9> kOurs = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  unsigned char* found = nullptr;
  const int status = SSL_select_next_proto(&found, length, kOurs.data(), kOurs.size(), offered, offered_length);
  *chosen = found;
  return status == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

Status require_clients_of(SSL_CTX* context, const std::string& file) {
  STACK_OF(X509_NAME)* names = SSL_load_client_CA_file(file.c_str());
  if (names == nullptr) return refuse("--tls-client-ca", file);
  SSL_CTX_set_client_CA_list(context, names);
  if (SSL_CTX_load_verify_locations(context, file.c_str(), nullptr) != 1) return refuse("--tls-client-ca", file);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return ok_status();
}

Result<std::shared_ptr<SSL_CTX>> build(const TlsFiles& files) {
  ERR_clear_error();
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (!context) return Error{"TLS cannot be set up: " + reason_of_failure()};
  SSL_CTX* raw = context.get();
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  // Connections are kept, so sessions need not be; and a resumed one would not be checked against a new client CA.
  SSL_CTX_set_options(raw, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_num_tickets(raw, 0);
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_default_passwd_cb(raw, no_passphrase);
  SSL_CTX_set_alpn_select_cb(raw, choose_protocol, nullptr);
  if (SSL_CTX_use_certificate_chain_file(raw, files.certificate.c_str()) != 1) {
    return refuse("--tls-cert", files.certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(raw, files.key.c_str(), SSL_FILETYPE_PEM) != 1) return refuse("--tls-key", files.key);
  if (SSL_CTX_check_private_key(raw) != 1) return refuse("--tls-key", files.key);
  if (!files.client_ca.empty()) {
    if (const Status status = require_clients_of(raw, files.client_ca); !status.ok()) return status.error();
  }
  return context;
}

}  // namespace

ssize_t TlsLink::receive(char* to, std::size_t size) {
  // The other end may be waiting for it.
  return flush() ? socket_.receive(to, size) : -1;
}

bool TlsLink::send(const char* from, std::size_t size) {
  constexpr std::size_t kMostKept = std::size_t{64} << 10;
  kept_.append(from, size);
  return kept_.size() < kMostKept || flush();
}

bool TlsLink::flush() {
  if (kept_.empty()) return true;
  iovec piece{kept_.data(), kept_.size()};
  const bool sent = socket_.send({&piece, 1});
  kept_.clear();
  return sent;
}

TlsSession::~TlsSession() {
  SSL_free(ssl_);
}

ssize_t TlsSession::receive(char* to, std::size_t size) {
  ERR_clear_error();
  const std::size_t most = std::min<std::size_t>(size, std::numeric_limits<int>::max());
  const int count = SSL_read(ssl_, to, static_cast<int>(most));
  if (count > 0) return count;
  return SSL_get_error(ssl_, count) == SSL_ERROR_ZERO_RETURN ? 0 : -1;
}

bool TlsSession::send(const char* from, std::size_t size) {
  while (size > 0) {
    ERR_clear_error();
    const std::size_t most = std::min<std::size_t>(size, std::size_t{1} << 30);
    const int count = SSL_write(ssl_, from, static_cast<int>(most));
    if (count <= 0) return false;
    from += count;
    size -= static_cast<std::size_t>(count);
  }
  return link_.flush();
}

bool TlsSession::has_pending() const {
  return SSL_pending(ssl_) > 0;
}

void TlsSession::say_goodbye() {
  ERR_clear_error();
  SSL_shutdown(ssl_);
  link_.flush();
}

Result<std::unique_ptr<TlsContext>> TlsContext::load(TlsFiles files) {
  std::unique_ptr<TlsContext> made(new TlsContext(std::move(files)));
  if (const Status status = made->reload(); !status.ok()) return status.error();
  return made;
}

std::shared_ptr<SSL_CTX> TlsContext::current() const {
  const std::lock_guard lock(mutex_);
  return context_;
}

std::unique_ptr<TlsSession> TlsContext::accept(Socket& socket) const {
  ERR_clear_error();
  SSL* ssl = SSL_new(current().get());  // holds on to the context
  BIO* bio = ssl != nullptr ? BIO_new(socket_method()) : nullptr;
  if (bio == nullptr) {
    SSL_free(ssl);
    return nullptr;
  }
  std::unique_ptr<TlsSession> session(new TlsSession(ssl, socket));
  BIO_set_data(bio, &session->link_);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl, bio, bio);
  if (SSL_accept(ssl) == 1) return session;
  if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST) {
    iovec piece{const_cast<char*>(kSpeaksHttps.data()), kSpeaksHttps.size()};
    socket.send({&piece, 1});
  }
  return nullptr;
}

Status TlsContext::reload() {
  // Noted before reading: what is written meanwhile is seen as a change the next time.
  const Marks found = marks();
  Result<std::shared_ptr<SSL_CTX>> built = build(files_);
  const std::lock_guard lock(mutex_);
  read_ = found;
  if (!built.ok()) return built.error();
  context_ = *std::move(built);
  return ok_status();
}

std::optional<Status> TlsContext::reload_if_changed() {
  const Marks found = marks();
  {
    const std::lock_guard lock(mutex_);
    if (found == read_) return std::nullopt;
  }
  return reload();
}

TlsContext::Marks TlsContext::marks() const {
  Marks found;
  const std::array<const std::string*, 3> paths = {&files_.certificate, &files_.key, &files_.client_ca};
  for (std::size_t i = 0; i < paths.size(); ++i) {
    struct stat info {};
    if (paths[i]->empty() || ::stat(paths[i]->c_str(), &info) != 0) continue;
    found[i] = {info.st_ino, info.st_size, info.st_mtim.tv_sec * kSecond + info.st_mtim.tv_nsec};
  }
  return found;
}

std::int64_t TlsContext::expires() const {
  const std::shared_ptr<SSL_CTX> context = current();
  std::tm time{};
  ASN1_TIME_to_tm(X509_get0_notAfter(SSL_CTX_get0_certificate(context.get())), &time);
  return timegm(&time);
}

}  // namespace mortise::extender
