#include "scheduler/extender/wire_preempt.h"

#include <unordered_map>
#include <utility>

#include "scheduler/extender/json_text.h"
#include "scheduler/extender/wire_reader.h"

namespace mortise::extender {
namespace {

using Value = JsonReader::Value;

/// One of the request's two maps from node to victims.
class VictimsReader {
 public:
  /// `whole_pods`: the entries are Pods rather than their UIDs.
  VictimsReader(JsonReader& json, std::string_view name, bool whole_pods)
      : json_(json), name_(name), whole_pods_(whole_pods) {}

  bool read(Value& value);
  std::vector<PreemptionCandidate>& candidates() { return candidates_; }

 private:
  bool victims(Value& value, PreemptionCandidate& candidate);
  bool pods(Value& value, PreemptionCandidate& candidate);
  bool meta_pod(Value& value, ProposedVictim& victim);
  bool whole_pod(Value& value, ProposedVictim& victim);

  JsonReader& json_;
  std::string_view name_;
  bool whole_pods_;
  std::vector<PreemptionCandidate> candidates_;
  std::unordered_map<std::string_view, std::size_t> at_;  // by node
};

bool VictimsReader::read(Value& value) {
  const std::string_view text = json_.token(value);
  candidates_.clear();
  at_.clear();
  if (text == "null") return true;
  if (!text.starts_with('{')) return json_.fail(std::string(name_) + " must be an object with an entry per node");
  return json_.each_field(value, [&](std::string_view node, Value& entry) {
    auto found = at_.find(node);
    if (found == at_.end()) {
      const std::string_view kept = json_.keep(node);
      candidates_.push_back({kept, {}, 0});
      found = at_.emplace(kept, candidates_.size() - 1).first;
    }
    PreemptionCandidate& candidate = candidates_[found->second];
    candidate = {candidate.node, {}, 0};
    return victims(entry, candidate);
  });
}

bool VictimsReader::victims(Value& value, PreemptionCandidate& candidate) {
  const std::string_view text = json_.token(value);
  if (text == "null") return true;
  if (!text.starts_with('{')) {
    return json_.fail("each entry of " + std::string(name_) + " must be an object with Pods and NumPDBViolations");
  }
  return json_.each_field(value, [&](std::string_view key, Value& field) {
    if (same_key(key, "Pods")) return pods(field, candidate);
    if (same_key(key, "NumPDBViolations")) {
      return json_.integer_or_null(field, "NumPDBViolations", candidate.pdb_violations);
    }
    return json_.pass(field);
  });
}

bool VictimsReader::pods(Value& value, PreemptionCandidate& candidate) {
  const std::string_view text = json_.token(value);
  candidate.victims.clear();
  if (text == "null") return true;
  if (!text.starts_with('[')) return json_.fail("Pods in " + std::string(name_) + " must be an array");
  return json_.each_element(value, [&](Value& item) {
    ProposedVictim& victim = candidate.victims.emplace_back();
    const std::string_view item_text = json_.token(item);
    if (item_text == "null") return true;
    if (!item_text.starts_with('{')) {
      return json_.fail("each of Pods in " + std::string(name_) + " must be an object");
    }
    return whole_pods_ ? whole_pod(item, victim) : meta_pod(item, victim);
  });
}

bool VictimsReader::meta_pod(Value& value, ProposedVictim& victim) {
  return json_.each_field(value, [&](std::string_view key, Value& field) {
    return same_key(key, "UID") ? json_.string_or_null(field, "the UID of a victim", victim.uid) : json_.pass(field);
  });
}

bool VictimsReader::whole_pod(Value& value, ProposedVictim& victim) {
  std::int64_t priority = 0;
  const bool passed = json_.each_field(value, [&](std::string_view key, Value& part) {
    const bool metadata = same_key(key, "metadata");
    if ((!metadata && !same_key(key, "spec")) || json_.token(part) == "null") return json_.pass(part);
    if (!json_.token(part).starts_with('{')) return json_.fail(std::string(key) + " of a victim must be an object");
    return json_.each_field(part, [&](std::string_view name, Value& field) {
      if (metadata && same_key(name, "uid")) return json_.string_or_null(field, "the UID of a victim", victim.uid);
      if (!metadata && same_key(name, "priority")) {
        return json_.integer_or_null(field, "the priority of a victim", priority);
      }
      return json_.pass(field);
    });
  });
  victim.priority = priority;
  return passed;
}

bool read_args(JsonReader& json, PreemptionArgs& out) {
  VictimsReader whole(json, "NodeNameToVictims", true);
  VictimsReader meta(json, "NodeNameToMetaVictims", false);
  const bool passed = json.each_field([&](std::string_view key, Value& value) {
    if (same_key(key, "Pod")) return json.object_or_null(value, "Pod", out.pod);
    if (same_key(key, "NodeNameToVictims")) return whole.read(value);
    if (same_key(key, "NodeNameToMetaVictims")) return meta.read(value);
    return json.pass(value);
  });
  if (!passed) return false;
  out.candidates = std::move(meta.candidates().empty() ? whole.candidates() : meta.candidates());
  out.kept = json.take_kept();
  return true;
}

}  // namespace

Result<PreemptionArgs> read_preemption_args(std::string& body) {
  PreemptionArgs args;
  const Status read = read_document(body, [&](JsonReader& json) {
    args = {};
    return read_args(json, args);
  });
  if (!read.ok()) return read.error();
  return args;
}

std::string write_preemption_result(const std::vector<NodeVictims>& nodes) {
  std::string out = R"({"NodeNameToMetaVictims":{)";
  Separator comma;
  for (const NodeVictims& node : nodes) {
    comma(out);
    append_string(out, node.node);
    out += R"(:{"Pods":[)";
    Separator pod_comma;
    for (const std::string& uid : node.uids) {
      pod_comma(out);
      out += R"({"UID":)";
      append_string(out, uid);
      out += '}';
    }
    out += R"(],"NumPDBViolations":)" + std::to_string(node.pdb_violations) + '}';
  }
  out += "}}";
  return out;
}

}  // namespace mortise::extender
