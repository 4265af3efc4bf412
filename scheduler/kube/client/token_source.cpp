#include "scheduler/kube/client/token_source.h"

#include <algorithm>
#include <utility>

#include "scheduler/kube/objects/text_file.h"

namespace mortise::kube {

bool is_bearer_token(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

TokenSource::TokenSource(std::string fixed, std::string file, const Clock& clock)
    : file_(std::move(file)), clock_(clock), token_(file_.empty() ? std::move(fixed) : std::string()) {}

TokenSource::Stamp TokenSource::stamp_of(const std::string& file) {
  struct stat info {};
  if (stat(file.c_str(), &info) != 0) return {};
  return {info.st_dev, info.st_ino, info.st_size, info.st_mtim};
}

bool TokenSource::same(const Stamp& a, const Stamp& b) {
  return a.device == b.device && a.inode == b.inode && a.size == b.size && a.changed.tv_sec == b.changed.tv_sec &&
         a.changed.tv_nsec == b.changed.tv_nsec;
}

Result<std::string> TokenSource::current() {
  const std::lock_guard lock(mutex_);
  if (file_.empty()) return token_;
  const bool fresh = trusted_ && clock_.now() - read_at_ < kMaxAge && same(stamp_of(file_), stamp_);
  if (fresh) return token_;
  if (const Status read = read_file(); !read.ok() && token_.empty()) return read.error();
  return token_;
}

void TokenSource::distrust() {
  const std::lock_guard lock(mutex_);
  trusted_ = false;
}

Status TokenSource::read_file() {
  // Taken before the content: a file replaced in between is then read once more.
  const Stamp stamp = stamp_of(file_);
  const Result<std::string> text = read_text_file(file_);
  if (!text) return text.error();
  const std::size_t begin = text->find_first_not_of(" \r\n\t");
  if (begin == std::string::npos) return Error{file_ + ": holds no token"};
  std::string token = text->substr(begin, text->find_last_not_of(" \r\n\t") + 1 - begin);
  if (!is_bearer_token(token)) return Error{file_ + ": is not a token: it has blanks or control characters"};
  token_ = std::move(token);
  stamp_ = stamp;
  read_at_ = clock_.now();
  trusted_ = true;
  return ok_status();
}

}  // namespace mortise::kube
