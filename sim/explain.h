#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/placement/domains.h"
#include "scheduler/placement/engine.h"
#include "scheduler/placement/gang_planner.h"
#include "sim/asks.h"
#include "sim/inputs.h"

namespace mortise::sim {

/// One thing that stands against it.
struct WhyNot {
  std::string reason;       ///< constant name
  std::int64_t nodes = 0;   ///< of a pod: that say so
  std::string detail = {};  ///< of a gang: the arithmetic
  bool exact = true;        ///< false: the search was cut short
};

/// What comes nearest.
struct Nearest {
  bool is_node = true;  ///< else a domain
  std::string name;
  std::string missing;
  bool is_amount = true;  ///< what is missing is so much of something, else a reason
};

/// A change with which it would fit; found by trying.
struct Change {
  std::string kind;  ///< relax, uncordon, fewer_members, free_pods, add_node
  std::string detail;
};

struct PodPlace {
  std::string pod;
  std::string node;
  std::string devices;  ///< `0,1`; empty: none
};

struct LevelCount {
  std::string level;
  std::int64_t domains = 0;
};

/// What there is to say about one ask.
struct Answer {
  Ask ask;
  bool fits = false;
  std::vector<PodPlace> places;     ///< of those that had none, in the order of the manifest
  std::string level;                ///< of a gang: the finest of which one domain holds all members
  std::string domain;               ///< that domain
  std::vector<LevelCount> domains;  ///< of each finer level
  std::string note;                 ///< what of its wishes does not count; empty: all do
  std::vector<WhyNot> reasons;
  std::vector<Nearest> nearest;
  std::vector<Change> changes;  ///< the least first
};

/// Answers where pods and gangs would go on a cluster, one after the other: what fits takes its places before the next
/// is asked about.
class Explainer {
 public:
  static Result<Explainer> make(const ClusterInput& cluster, const std::string& policy, std::uint64_t seed);

  /// An error when the manifest does not go with the cluster: a pod that is on a node here and not there.
  Status check(const Manifest& manifest) const;
  Result<Answer> answer(Ask ask);

 private:
  using NodeList = std::vector<NodeId>;
  struct Question;

  explicit Explainer(const ClusterInput& input) : input_(input) {}

  // Of pods.
  Status answer_pod(Answer& answer);
  std::vector<placement::NodeAnswer> by_nearness(const placement::PodRequest& pod,
                                                 std::vector<placement::NodeAnswer> answers) const;
  Nearest nearest_of(const placement::PodRequest& pod, const placement::NodeAnswer& node) const;
  void change_pod(const AskingPod& pod, std::span<const placement::NodeAnswer> nearest, Answer& answer);
  std::optional<Change> free_pods(const placement::PodRequest& pod, std::span<const placement::NodeAnswer> nearest);
  std::optional<Change> add_node(const placement::PodRequest& pod, std::span<const placement::NodeAnswer> nearest);

  // Of gangs.
  Status answer_gang(Answer& answer);
  Question question_of(const Ask& ask) const;
  Status take_places(const placement::GangPlan& plan, const Question& question, Answer& answer);
  void change_gang(const Question& question, placement::GangReason reason, Answer& answer);
  void why_on_no_node(const placement::GangRole& role, Answer& answer);
  void relax_level(const Question& question, Answer& answer);
  void relax_members(const Question& question, Answer& answer);
  void uncordon(const Question& question, Answer& answer);
  std::optional<NodeId> fewer_members(const Question& question, Answer& answer);
  int required_level(const Question& question) const;
  std::optional<NodeId> roomiest(const Question& question, std::optional<NodeId> near) const;
  std::optional<Change> more_nodes(const Question& question, NodeId like);
  std::string place_text(const placement::GangPlan& plan) const;

  NodeList selected(const kube::Labels& selector) const;

  const ClusterInput& input_;
  std::unique_ptr<placement::ClusterState> cluster_;
  std::unique_ptr<placement::Domains> domains_;
  std::unique_ptr<placement::Policy> policy_;
  std::unique_ptr<placement::Engine> engine_;
  std::unique_ptr<placement::GangPlanner> planner_;
  std::map<NodeId, std::size_t> file_node_;                                    // place in the cluster file
  std::map<NodeId, std::vector<std::pair<AllocationId, std::size_t>>> bound_;  // with places in the file's pods
};

}  // namespace mortise::sim
