#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scheduler/placement/cover.h"
#include "scheduler/placement/gang_kinds.h"
#include "scheduler/placement/gang_packer.h"
#include "scheduler/placement/gang_rooms.h"
#include "scheduler/placement/placement_quality.h"

namespace mortise::placement {

/// The levels of one request.
struct GangLevels {
  int required = Domains::kCluster;
  int preferred = 0;  ///< not coarser than `required`
};

/// The search for one gang's plan.
class GangSearch {
 public:
  struct Context {
    const ClusterState& cluster;
    const Domains& domains;
    const Policy& policy;
    QualityMeter& quality;
  };

  GangSearch(const Context& context, const GangRequest& request, std::vector<GangKind> kinds, GangLevels levels,
             GangRooms::View view);

  /// Some domain of the required level has room for enough of the gang. False: see exact().
  bool fits();
  /// The plan; nothing when the search did not find one although it fits.
  std::optional<GangPlan> plan();
  /// Why it does not fit, in numbers.
  std::string shortfall();
  /// What was not found is not there: no room was left out of the search, or sums alone say so.
  bool exact() const { return !looked_ || all_mixes_known(); }

 private:
  /// A domain, or a node where the level is the nodes'.
  struct Spot {
    DomainId domain;
    std::optional<NodeId> node;
  };
  using NodeShare = std::pair<NodeId, Mix>;
  struct Rank {
    std::int64_t quality = 0;
    std::int64_t score = 0;
    std::int64_t tie_score = 0;
  };

  bool all_mixes_known() const { return rooms_.exact() && node_room_.exact() && budget_.steps > 0; }
  std::string shortfall_of_kind(std::size_t kind, const std::vector<Spot>& tops);
  std::string shortfall_together(std::vector<Spot> tops);
  std::string best_text(const Spot& best, std::int64_t has) const;
  std::string place_text() const;

  const Mixes& room(const Spot& spot) { return spot.node ? rooms_.of(*spot.node) : rooms_.of(spot.domain); }
  Mix alone(const Spot& spot) const { return spot.node ? rooms_.alone(*spot.node) : rooms_.alone(spot.domain); }
  bool in_use(const Spot& spot) const;
  bool may_hold(const Spot& spot, const Mix& members) const;
  std::int64_t free_gpus(const Spot& spot) const;
  void collect(DomainId under, std::vector<Spot>& nodes) const;
  std::vector<Spot> spots(int level);
  std::optional<Spot> pin(int level) const;
  void measure_tops(bool prune);
  std::int64_t least_gpus() const;
  bool enough(const Mix& mix) const;
  const Mix* best_of(const Mixes& mixes) const;
  Mix most();
  Mix most_packed();
  std::vector<NodeId> nodes_to_pack(const Spot& spot);
  std::optional<GangPlan> pack_at(int level, const Mix& target);
  std::vector<Spot> tightest_first(int level, const Mix& target);

  std::optional<std::vector<NodeShare>> spread_at(int level, const Mix& target);
  std::optional<std::vector<NodeShare>> on_one_node(std::vector<Spot> fitting, const Mix& target);
  std::int64_t fewest_possible(int level, const Mix& target);
  std::vector<Spot> parts_of(DomainId domain);
  std::optional<Cover> cover_parts(const std::vector<Spot>& parts, const Mix& target);
  bool place(DomainId domain, const Mix& target, std::vector<NodeShare>& shares);
  bool before(NodeId a, NodeId b);
  const Rank& rank(NodeId node);
  std::optional<GangPlan> settle(const std::vector<NodeShare>& shares);
  GangPlan made_of(const std::vector<GangPacker::Seat>& seats) const;
  void name_members(const std::vector<std::size_t>& kinds, GangPlan& plan) const;
  void measure_plan(GangPlan& plan) const;

  const Context context_;
  const GangRequest& request_;
  const std::vector<GangKind> kinds_;
  const GangLevels levels_;
  std::vector<std::int64_t> weights_;
  Mix wanted_;
  Mix least_;
  Mix need_;  // no less of any kind will do, whatever the others are
  NodeRoom node_room_;
  GangRooms rooms_;
  GangPacker packer_;
  SearchBudget budget_;
  bool looked_ = false;               // at mixes, for sums alone did not tell
  std::optional<Mix> most_packed_{};  // once it was asked for
  bool counted_ = true;               // what a refusal tells is all that there is room for
  std::vector<NodeId> bound_;
  std::set<DomainId> bound_domains_;
  std::unordered_map<std::uint32_t, Rank> ranks_;  // by state; never walked
};

}  // namespace mortise::placement
