#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "scheduler/base/result.h"
#include "scheduler/topology/index_set.h"
#include "scheduler/topology/numa_mask.h"

namespace mortise::topology {

/// Reads JSON values and remembers the first thing that was wrong. After a failure the values are of no meaning, so a
/// reader may go on and look at failed() at the end of a step. `where` names the place in messages ("node.numa[0]").
class JsonFields {
 public:
  using Json = nlohmann::json;

  bool failed() const { return error_.has_value(); }
  Error error() const { return *error_; }
  void fail(const std::string& where, const std::string& what);

  /// Checks that `value` is an object and has no other keys than these.
  bool object(const Json& value, const std::string& where, std::initializer_list<std::string_view> known);
  /// The member, or null when it is absent or JSON null.
  static const Json* find(const Json& object, std::string_view key);

  std::string text(const Json& value, const std::string& where);
  bool flag(const Json& value, const std::string& where);
  std::int64_t integer(const Json& value, const std::string& where, std::int64_t least, std::int64_t most);
  /// Options are written as kubelet's strings; numbers and booleans are taken as their spelling.
  std::string scalar_text(const Json& value, const std::string& where);
  /// A Kubernetes quantity, as text or as a whole number.
  std::int64_t whole_quantity(const Json& value, const std::string& where);
  std::int64_t milli_quantity(const Json& value, const std::string& where);
  /// A list of NUMA ids.
  NumaMask numa_list(const Json& value, const std::string& where);
  /// Linux CPU list format, "0-3,8".
  IndexSet cpu_list(const Json& value, const std::string& where);

 private:
  std::optional<Error> error_;
};

/// "0-3,8"; empty for no CPUs.
std::string cpu_list_text(const IndexSet& cpus);

}  // namespace mortise::topology
