#pragma once

#include <sys/stat.h>

#include <mutex>
#include <string>

#include "scheduler/base/clock.h"
#include "scheduler/base/result.h"

namespace mortise::kube {

/// The bearer token to send. kubelet replaces the file of a service account's token well before the old one expires.
/// Safe for use by several threads at once.
class TokenSource {
 public:
  /// The oldest a token read from a file may be.
  static constexpr Nanoseconds kMaxAge = 60 * kSecond;

  /// `file` goes before `fixed`; both empty: no token. `clock` must outlive the source.
  TokenSource(std::string fixed, std::string file, const Clock& clock);

  /// The token, or empty for none. A file is read when it has changed, when a minute has passed, and after distrust().
  /// While it cannot be read, the last token read serves on; the error is for when there never was one.
  Result<std::string> current();

  /// The server has refused the token: read the file again before the next use.
  void distrust();

 private:
  /// Two equal stamps: the file was not replaced or written in between.
  struct Stamp {
    dev_t device = 0;
    ino_t inode = 0;
    off_t size = 0;
    timespec changed{};
  };
  static Stamp stamp_of(const std::string& file);
  static bool same(const Stamp& a, const Stamp& b);
  Status read_file();

  const std::string file_;
  const Clock& clock_;
  std::mutex mutex_;
  std::string token_;  // what follows is guarded by mutex_
  Stamp stamp_;
  Nanoseconds read_at_ = 0;
  bool trusted_ = false;
};

/// Whether the text can stand in an Authorization header: visible ASCII only.
bool is_bearer_token(const std::string& text);

}  // namespace mortise::kube
