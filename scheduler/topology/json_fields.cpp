#include "scheduler/topology/json_fields.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "scheduler/base/quantity.h"
#include "scheduler/base/quote.h"

namespace mortise::topology {
namespace {

std::string shown(const nlohmann::json& value) {
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  return value.is_string() ? quote(value.get_ref<const std::string&>()) : value.dump();
}

std::optional<std::size_t> cpu_id(std::string_view text) {
  std::size_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (id >= IndexSet::kCapacity) return std::nullopt;
  return id;
}

}  // namespace

void JsonFields::fail(const std::string& where, const std::string& what) {
  if (!error_) error_ = Error{where + ": " + what};
}

bool JsonFields::object(const Json& value, const std::string& where, std::initializer_list<std::string_view> known) {
  if (!value.is_object()) {
    fail(where, "is " + shown(value) + "; allowed: an object");
    return false;
  }
  for (const auto& [key, member] : value.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    std::string names;
    for (const std::string_view name : known) names += (names.empty() ? "" : ", ") + std::string(name);
    fail(where, "unknown key " + quote(key) + "; known: " + names);
    return false;
  }
  return true;
}

const JsonFields::Json* JsonFields::find(const Json& object, std::string_view key) {
  const auto member = object.find(key);
  return member == object.end() || member->is_null() ? nullptr : &*member;
}

std::string JsonFields::text(const Json& value, const std::string& where) {
  if (value.is_string()) return value.get<std::string>();
  fail(where, "is " + shown(value) + "; allowed: a string");
  return {};
}

bool JsonFields::flag(const Json& value, const std::string& where) {
  if (value.is_boolean()) return value.get<bool>();
  fail(where, "is " + shown(value) + "; allowed: true, false");
  return false;
}

std::int64_t JsonFields::integer(const Json& value, const std::string& where, std::int64_t least, std::int64_t most) {
  const bool too_big = value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
  if (value.is_number_integer() && !too_big) {
    const auto number = value.get<std::int64_t>();
    if (number >= least && number <= most) return number;
  }
  fail(where, "is " + shown(value) + "; allowed: whole numbers " + std::to_string(least) + ".." + std::to_string(most));
  return least;
}

std::string JsonFields::scalar_text(const Json& value, const std::string& where) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean() || value.is_number()) return value.dump();
  fail(where, "is " + shown(value) + "; allowed: a string");
  return {};
}

std::int64_t JsonFields::whole_quantity(const Json& value, const std::string& where) {
  if (!value.is_string() && !value.is_number_integer()) {
    fail(where, "is " + shown(value) + "; allowed: a quantity like 4 or \"256Gi\"");
    return 0;
  }
  const Result<Quantity> quantity = Quantity::parse(scalar_text(value, where));
  if (!quantity) {
    fail(where, quantity.message());
    return 0;
  }
  const Result<std::int64_t> whole = quantity->whole();
  if (!whole || *whole < 0) {
    fail(where, "is " + shown(value) + "; allowed: whole amounts from 0");
    return 0;
  }
  return *whole;
}

std::int64_t JsonFields::milli_quantity(const Json& value, const std::string& where) {
  const Result<Quantity> quantity = Quantity::parse(scalar_text(value, where));
  if (!quantity || quantity->negative()) {
    fail(where, quantity ? "is " + shown(value) + "; allowed: amounts from 0" : quantity.message());
    return 0;
  }
  return quantity->milli_rounded_up();
}

NumaMask JsonFields::numa_list(const Json& value, const std::string& where) {
  NumaMask mask = 0;
  if (!value.is_array()) {
    fail(where, "is " + shown(value) + "; allowed: a list of NUMA node ids");
    return mask;
  }
  for (const Json& id : value) mask |= numa_bit(static_cast<int>(integer(id, where, 0, kMaxNumaNodes - 1)));
  return mask;
}

IndexSet JsonFields::cpu_list(const Json& value, const std::string& where) {
  IndexSet cpus;
  const std::string list = text(value, where);
  std::string_view rest = list;
  while (!rest.empty() && !failed()) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const std::size_t dash = part.find('-');
    const auto first = cpu_id(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : cpu_id(part.substr(dash + 1));
    if (!first || !last || *first > *last) {
      fail(where, "is " + shown(value) + "; allowed: a CPU list like 0-3,8 with ids below " +
                      std::to_string(IndexSet::kCapacity));
      break;
    }
    for (std::size_t cpu = *first; cpu <= *last; ++cpu) cpus.insert(cpu);
  }
  return cpus;
}

std::string cpu_list_text(const IndexSet& cpus) {
  std::string text;
  for (std::size_t cpu = 0; cpu < IndexSet::kCapacity; ++cpu) {
    if (!cpus.contains(cpu)) continue;
    std::size_t last = cpu;
    while (last + 1 < IndexSet::kCapacity && cpus.contains(last + 1)) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(cpu);
    if (last > cpu) text += "-" + std::to_string(last);
    cpu = last;
  }
  return text;
}

}  // namespace mortise::topology
