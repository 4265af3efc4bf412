#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/verbs.h"
#include "tests/unit/sim/program.h"

namespace mortise::sim {

using nlohmann::json;

json node(const std::string& name, int gpus);
json node(const std::string& name, int gpus, json labels);
json in_rack(const std::string& name, int gpus, const std::string& rack);
json pod(const std::string& name, int gpus, const std::string& cpu = "1");
json on_node(json made, const std::string& node_name);
/// A member by our own convention, the shortest to write.
json member(const std::string& name, const std::string& gang, int minimum, int gpus, const std::string& cpu = "1");
std::vector<json> gang(const std::string& name, int members, int gpus, const std::string& required = "");

class Explain : public Program {
 protected:
  void write_list(const std::string& name, const std::vector<json>& items) const;
  static Ran run(const std::vector<std::string>& arguments);
  json explain(const std::vector<json>& cluster, const std::vector<json>& pods,
               const std::vector<std::string>& more = {});
  /// The one line about input that is wrong.
  std::string refused(const std::vector<json>& cluster, const std::vector<json>& pods);

  static std::string change(const json& answer, const std::string& kind);
  static std::vector<std::string> places(const json& answer);

  using Counts = std::map<std::string, int>;
  /// Members by node.
  static Counts counts(const json& answer);

  Ran ran_;
};

}  // namespace mortise::sim
