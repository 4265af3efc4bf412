#include "scheduler/kube/objects/field.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "scheduler/base/quote.h"

namespace mortise::kube {

using nlohmann::json;

Field::Field(const json* value, std::string path, std::optional<Error>* mistake)
    : value_(value != nullptr && value->is_null() ? nullptr : value), path_(std::move(path)), mistake_(mistake) {}

void Field::complain(std::string_view expected) const {
  if (mistake_->has_value()) return;
  const std::string what = path_.empty() ? "the document" : path_;
  *mistake_ =
      Error{what + " must be " + std::string(expected) + ", not " +
            (value_->is_number() ? "the number " + value_->dump() : std::string("of type ") + value_->type_name())};
}

Field Field::member(const char* key) const {
  std::string path = path_.empty() ? key : path_ + "." + key;
  if (value_ == nullptr) return {nullptr, std::move(path), mistake_};
  if (!value_->is_object()) {
    complain("an object");
    return {nullptr, std::move(path), mistake_};
  }
  const auto found = value_->find(key);
  return {found == value_->end() ? nullptr : &*found, std::move(path), mistake_};
}

Field Field::inside(const json& value, const std::string& key) const {
  return {&value, path_ + "[" + key + "]", mistake_};
}

std::vector<Field> Field::items() const {
  std::vector<Field> all;
  if (value_ == nullptr) return all;
  if (!value_->is_array()) {
    complain("an array");
    return all;
  }
  all.reserve(value_->size());
  for (const json& item : *value_) all.push_back(inside(item, std::to_string(all.size())));
  return all;
}

std::vector<std::pair<std::string, Field>> Field::members() const {
  std::vector<std::pair<std::string, Field>> all;
  if (value_ == nullptr) return all;
  if (!value_->is_object()) {
    complain("an object");
    return all;
  }
  for (const auto& [key, value] : value_->items()) all.emplace_back(key, inside(value, quote(key)));
  return all;
}

std::string Field::text() const {
  if (value_ == nullptr) return {};
  if (!value_->is_string()) {
    complain("a string");
    return {};
  }
  return value_->get_ref<const std::string&>();
}

bool Field::flag() const {
  if (value_ == nullptr) return false;
  if (!value_->is_boolean()) {
    complain("true or false");
    return false;
  }
  return value_->get<bool>();
}

std::optional<std::int64_t> Field::whole(int bits) const {
  if (value_ == nullptr) return std::nullopt;
  const std::int64_t most = std::numeric_limits<std::int64_t>::max() >> (64 - bits);
  const bool too_large =
      value_->is_number_unsigned() && value_->get<std::uint64_t>() > static_cast<std::uint64_t>(most);
  if (!value_->is_number_integer() || too_large || value_->get<std::int64_t>() < -most - 1) {
    complain("a whole number of at most " + std::to_string(bits) + " bits");
    return std::nullopt;
  }
  return value_->get<std::int64_t>();
}

std::optional<std::int32_t> Field::count(std::int32_t least, std::int32_t most) const {
  if (value_ == nullptr) return std::nullopt;
  const bool whole_number = value_->is_number_integer();
  const bool small = !value_->is_number_unsigned() || value_->get<std::uint64_t>() <= static_cast<std::uint64_t>(most);
  if (!whole_number || !small || value_->get<std::int64_t>() < least) {
    complain("a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    return std::nullopt;
  }
  return static_cast<std::int32_t>(value_->get<std::int64_t>());
}

std::map<std::string, std::string> Field::texts() const {
  std::map<std::string, std::string> all;
  if (value_ == nullptr) return all;
  if (!value_->is_object()) {
    complain("an object");
    return all;
  }
  for (const auto& [key, value] : value_->items()) {
    all.emplace_hint(all.end(), key,
                     value.is_string() ? value.get_ref<const std::string&>() : inside(value, quote(key)).text());
  }
  return all;
}

ResourceList Field::quantities() const {
  ResourceList all;
  if (value_ == nullptr) return all;
  if (!value_->is_object()) {
    complain("an object");
    return all;
  }
  for (const auto& [key, value] : value_->items()) {
    std::string amount = "0";  // what Kubernetes makes of null
    if (value.is_string()) {
      amount = value.get_ref<const std::string&>();
    } else if (value.is_number()) {
      amount = value.dump();
    } else if (!value.is_null()) {
      amount = inside(value, quote(key)).text();
    }
    all.emplace_hint(all.end(), key, std::move(amount));
  }
  return all;
}

}  // namespace mortise::kube
