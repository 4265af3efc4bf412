#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/kube/objects/pod.h"

namespace mortise::kube {

/// A value inside a JSON document, read as what it should be. Missing and null values read as empty. The first value
/// of a wrong type is kept in `mistake` with its path, and reads as empty too. The document must outlive the field.
class Field {
 public:
  Field(const nlohmann::json& document, std::optional<Error>& mistake) : Field(&document, {}, &mistake) {}

  Field member(const char* key) const;
  std::vector<Field> items() const;
  /// The members of an object, by name.
  std::vector<std::pair<std::string, Field>> members() const;

  bool present() const { return value_ != nullptr; }
  std::string text() const;
  bool flag() const;
  /// A whole number that a signed integer of `bits` bits holds.
  std::optional<std::int64_t> whole(int bits = 64) const;
  /// A whole number from `least` to `most`.
  std::optional<std::int32_t> count(std::int32_t least, std::int32_t most) const;
  std::map<std::string, std::string> texts() const;
  /// Kubernetes writes quantities as strings and reads numbers, too.
  ResourceList quantities() const;

 private:
  Field(const nlohmann::json* value, std::string path, std::optional<Error>* mistake);
  void complain(std::string_view expected) const;
  Field inside(const nlohmann::json& value, const std::string& key) const;

  const nlohmann::json* value_;  ///< null: missing
  std::string path_;
  std::optional<Error>* mistake_;
};

}  // namespace mortise::kube
