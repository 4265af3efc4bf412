#pragma once

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace mortise {

/// Why an input was refused: one line, ready to be shown to a person.
struct Error {
  std::string message;
};

/// A value or the reason why there is none. Bad input is a value of this type, never an exception.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : data_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : data_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return data_.index() == 0; }
  explicit operator bool() const { return ok(); }

  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(value()); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }

  const std::string& message() const {
    assert(!ok());
    return std::get<1>(data_).message;
  }
  Error error() const { return Error{message()}; }

 private:
  const T& value() const {
    assert(ok());
    return *std::get_if<0>(&data_);
  }
  T& value() {
    assert(ok());
    return *std::get_if<0>(&data_);
  }

  std::variant<T, Error> data_;
};

/// The outcome of an operation that yields nothing but may be refused.
using Status = Result<std::monostate>;

inline Status ok_status() {
  return Status(std::monostate{});
}

}  // namespace mortise
