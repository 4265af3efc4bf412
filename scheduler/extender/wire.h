#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/base/result.h"

namespace mortise::extender {

// The extender protocol's documents (k8s.io/kube-scheduler/extender/v1). Keys are matched as Go's encoding/json does:
// in any case, the last of two wins, null is "not given", a value of the wrong type refuses the whole call, and only
// the first JSON value of the body counts.

/// One entry of NodeNames or of Nodes.items.
struct AskedNode {
  std::string_view name;
  std::string_view object;  ///< the Node's JSON text as it came; empty for an entry of NodeNames
};

/// The body of filter and prioritize. The views point into the request's bytes, which must outlive it.
struct ExtenderArgs {
  std::string_view pod;               ///< the Pod's JSON text; empty: null or missing
  bool has_names = false;             ///< NodeNames was given, be it empty
  bool has_nodes = false;             ///< Nodes was given, be it empty
  std::vector<AskedNode> nodes;       ///< NodeNames, then Nodes.items; as sent, with repeats
  std::deque<std::string> unescaped;  ///< names written with escapes: what their views point to
};

/// The body of bind.
struct BindingArgs {
  std::string pod_name;
  std::string pod_namespace;
  std::string pod_uid;
  std::string node;
};

/// `body` grows by the padding the parser needs (spaces); reserve kBodyPadding more than the text to avoid a copy.
inline constexpr std::size_t kBodyPadding = 64;
Result<ExtenderArgs> read_extender_args(std::string& body);
Result<BindingArgs> read_binding_args(std::string& body);

enum class Verdict : std::uint8_t {
  kPassed,
  kFailed,        ///< FailedNodes: freeing something on the node could help
  kUnresolvable,  ///< FailedAndUnresolvableNodes
};

/// What is answered about one node.
struct NodeVerdict {
  std::string_view name;
  std::string_view object;  ///< echoed when the node passes and was asked for as an object
  bool by_name = false;     ///< the node was in NodeNames
  Verdict verdict = Verdict::kPassed;
  std::uint8_t reason = 0;  ///< index into FilterResult::reasons; of no meaning for kPassed
};

/// The answer to filter. The views point into the request.
struct FilterResult {
  std::string error;  ///< not empty: the whole call failed, nothing else is sent
  bool has_names = false;
  bool has_nodes = false;
  std::vector<NodeVerdict> nodes;  ///< each requested node once, in the order asked
  std::vector<std::string> reasons;
};

struct HostPriority {
  std::string_view host;
  std::int64_t score = 0;
};

std::string write_filter_result(const FilterResult& result);
std::string write_priorities(const std::vector<HostPriority>& priorities);
/// `error` is empty for success.
std::string write_binding_result(std::string_view error);

}  // namespace mortise::extender
