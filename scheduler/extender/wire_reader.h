#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "scheduler/base/result.h"

namespace mortise::extender {

/// A reference to something callable, which must outlive it: for arguments only.
template <class Signature>
class FunctionRef;

template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F>
  FunctionRef(F&& f)  // NOLINT(google-explicit-constructor): a lambda is to be passed as it is
      : object_(std::addressof(f)), call_([](void* object, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
        }) {}

  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

/// Keys as Go's encoding/json matches them: in any case. Ours are ASCII.
bool same_key(std::string_view a, std::string_view b);

/// Walks one JSON document, value by value and in order, and checks the syntax of all it passes: simdjson's on-demand
/// front end looks only at what is asked for, but parts of the request are sent back as they came. Every value must be
/// passed once, by one of the functions that take it. A function that returns false has set problem().
class JsonReader {
 public:
  class Value;
  struct Document;
  using OnField = FunctionRef<bool(std::string_view key, Value& value)>;
  using OnElement = FunctionRef<bool(Value& value)>;

  /// `text` is the document's.
  JsonReader(Document& document, std::string_view text) : document_(document), text_(text), at_(text.data()) {}

  const std::string& problem() const { return problem_; }
  bool fail(std::string_view what);

  /// The text of a scalar, or the bracket that opens a container. Does not pass it; empty beyond the end.
  std::string_view token(Value& value);

  /// The fields of the document itself. A key is valid during the call only.
  bool each_field(OnField on_field);
  bool each_field(Value& value, OnField on_field);
  bool each_element(Value& value, OnElement on_element);
  /// Passes a value that is of no interest.
  bool pass(Value& value);
  /// Passes a value; `out` is its text.
  bool slice(Value& value, std::string_view& out);
  /// What was passed since `begin`, which token() gave: the text of the value that begins there.
  bool slice_from(const char* begin, std::string_view& out);

  /// Null leaves `out` as it is, as in Go. `name` is for the complaint.
  bool string_or_null(Value& value, std::string_view name, std::string_view& out);
  bool copy_string(Value& value, std::string_view name, std::string& out);
  /// The text of an object; null gives none.
  bool object_or_null(Value& value, std::string_view name, std::string_view& out);
  /// As Go reads an int64: no fraction, no exponent.
  bool integer_or_null(Value& value, std::string_view name, std::int64_t& out);

  /// A view of the text that lives as long as what take_kept() gives.
  std::string_view keep(std::string_view text) { return kept_.emplace_back(text); }
  std::deque<std::string> take_kept() { return std::move(kept_); }

 private:
  bool fail_syntax() { return fail("request is not valid JSON"); }
  bool pass_string(Value& value);
  bool check(Value& value, int depth);
  template <class Object>
  bool each_field_of(Object& object, OnField on_field);
  template <class Field>
  bool check_key(Field& field);
  bool check_object(Value& value, int depth);

  Document& document_;
  std::string_view text_;
  const char* at_;
  std::string problem_;
  std::deque<std::string> kept_;  // strings written with escapes: what their views point to
};

/// Reads the first JSON value of the body, which must be an object, by `read`; that may be called twice, and what the
/// last call gave counts. Null is an object without fields. `body` grows by kBodyPadding spaces.
Status read_document(std::string& body, FunctionRef<bool(JsonReader&)> read);

}  // namespace mortise::extender
