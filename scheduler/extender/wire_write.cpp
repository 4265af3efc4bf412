#include "scheduler/extender/json_text.h"
#include "scheduler/extender/wire.h"

namespace mortise::extender {
namespace {

void append_failed(std::string& out, const FilterResult& result, Verdict verdict,
                   const std::vector<std::string>& quoted_reasons) {
  out += '{';
  Separator comma;
  for (const NodeVerdict& node : result.nodes) {
    if (node.verdict != verdict) continue;
    comma(out);
    append_string(out, node.name);
    out += ':';
    out += quoted_reasons[node.reason];
  }
  out += '}';
}

void append_passed_objects(std::string& out, const FilterResult& result) {
  out += R"({"metadata":{},"items":[)";
  Separator comma;
  for (const NodeVerdict& node : result.nodes) {
    if (node.verdict != Verdict::kPassed || node.object.empty()) continue;
    comma(out);
    out += node.object;
  }
  out += "]}";
}

void append_passed_names(std::string& out, const FilterResult& result) {
  out += '[';
  Separator comma;
  for (const NodeVerdict& node : result.nodes) {
    if (node.verdict != Verdict::kPassed || !node.by_name) continue;
    comma(out);
    append_string(out, node.name);
  }
  out += ']';
}

/// Close to what the answer will take, so that a large answer is not copied while it grows.
std::size_t expected_size(const FilterResult& result) {
  std::size_t size = 128;
  for (const NodeVerdict& node : result.nodes) {
    size += node.name.size() + 8;
    size += node.verdict == Verdict::kPassed ? node.object.size() : result.reasons[node.reason].size();
  }
  return size;
}

}  // namespace

std::string write_filter_result(const FilterResult& result) {
  std::string out;
  if (!result.error.empty()) {
    out = R"({"Nodes":null,"NodeNames":null,"FailedNodes":null,"FailedAndUnresolvableNodes":null,"Error":)";
    append_string(out, result.error);
    out += '}';
    return out;
  }
  std::vector<std::string> quoted_reasons;
  for (const std::string& reason : result.reasons) append_string(quoted_reasons.emplace_back(), reason);

  out.reserve(expected_size(result));
  out += R"({"Nodes":)";
  if (result.has_nodes) {
    append_passed_objects(out, result);
  } else {
    out += "null";
  }
  out += R"(,"NodeNames":)";
  // A caller that gave no nodes at all still gets a list: null would read as "look at Nodes".
  if (result.has_names || !result.has_nodes) {
    append_passed_names(out, result);
  } else {
    out += "null";
  }
  out += R"(,"FailedNodes":)";
  append_failed(out, result, Verdict::kFailed, quoted_reasons);
  out += R"(,"FailedAndUnresolvableNodes":)";
  append_failed(out, result, Verdict::kUnresolvable, quoted_reasons);
  out += R"(,"Error":""})";
  return out;
}

std::string write_priorities(const std::vector<HostPriority>& priorities) {
  std::string out = "[";
  Separator comma;
  for (const HostPriority& entry : priorities) {
    comma(out);
    out += R"({"Host":)";
    append_string(out, entry.host);
    out += R"(,"Score":)";
    out += std::to_string(entry.score);
    out += '}';
  }
  out += ']';
  return out;
}

std::string write_binding_result(std::string_view error) {
  std::string out = R"({"Error":)";
  append_string(out, error);
  out += '}';
  return out;
}

}  // namespace mortise::extender
