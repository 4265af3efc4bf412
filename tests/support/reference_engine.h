#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "scheduler/base/units.h"
#include "scheduler/placement/decision.h"
#include "scheduler/placement/node_state.h"
#include "scheduler/placement/request.h"
#include "tests/support/reference_fragmentation.h"

namespace mortise::reference {

/// The placement rules written the obvious way: no caches, no ids, no index. Each question looks at all nodes and at
/// all pods on them. The product's engine must give the same answers.

struct HeldPod {
  std::uint64_t ticket = 0;  ///< whatever the caller knows the pod by
  placement::PodRequest ask;
  std::vector<int> devices;
};

struct Node {
  placement::NodeSpec spec;
  std::uint64_t rank = 0;
  std::vector<HeldPod> pods;
};

Left left_on(const Node& node);

/// The first rule the pod breaks on the node, kNone when it fits.
placement::Reason why_not(const Node& node, const placement::PodRequest& pod);

/// Whether just these devices of the node have what the pod asks for, and the node the rest.
bool can_hold(const Node& node, const placement::PodRequest& pod, const std::vector<int>& devices);

enum class Rule { kRandom, kFirstFit, kBestFit, kDotProduct, kGpuPacking, kGpuClustering, kFgd };
enum class Tie { kRank, kRandom, kBestFit };

struct PolicyRules {
  Rule rule = Rule::kFirstFit;
  Tie tie = Tie::kRank;
  MilliGpu step = 0;  ///< fgd: width of a score point in milli-GPU; 0: the published sigmoid
};

/// Reads `name` or `fgd:tie=rank|random|best-fit:step=N`; nothing for a policy without a reference.
std::optional<PolicyRules> parse_rules(std::string_view spelling);

/// What is thought of one node.
struct Verdict {
  placement::Reason reason = placement::Reason::kNone;
  std::int64_t score = 0;  ///< as published: only the order means anything
  std::int64_t tie = 0;
};

struct Choice {
  std::size_t node = 0;
  std::vector<int> devices;
  friend bool operator==(const Choice&, const Choice&) = default;
};

class Engine {
 public:
  Engine(PolicyRules rules, std::vector<Typical> typical, std::uint64_t seed);

  /// One verdict per node, in their order.
  std::vector<Verdict> judge(std::span<const Node> nodes, const placement::PodRequest& pod) const;
  /// By score, tie score, rank (or the random key), node order.
  std::optional<Choice> choose(std::span<const Node> nodes, const placement::PodRequest& pod) const;

  double fragmentation_of(const Node& node) const;
  double fragmentation_of(std::span<const Node> nodes) const;

 private:
  struct Gradient {
    std::int64_t points = 0;
    int device = -1;  ///< of a share
  };

  std::int64_t score(const Node& node, const placement::PodRequest& pod) const;
  Gradient gradient(const Node& node, const placement::PodRequest& pod) const;
  std::int64_t gradient_points(double before, const Left& after, const Node& node) const;
  int share_device(const Node& node, const placement::PodRequest& pod) const;
  std::uint64_t tie_key(const Node& node, const placement::PodRequest& pod) const;

  PolicyRules rules_;
  std::vector<Typical> typical_;
  std::uint64_t seed_;
};

}  // namespace mortise::reference
