// Why a gang does not fit, in numbers.
#include <algorithm>

#include "scheduler/placement/gang_search.h"

namespace mortise::placement {

namespace {
/// Domains that are looked at for the best of those in which the gang does not fit, the most promising ones.
constexpr std::size_t kTopsInText = 32;
}  // namespace

std::string GangSearch::place_text() const {
  if (levels_.required == Domains::kCluster) return "";
  return " in one " + std::string(context_.domains.level_name(levels_.required));
}

std::string GangSearch::best_text(const Spot& best, std::int64_t has) const {
  const std::string known = counted_ ? std::to_string(has) : "at least " + std::to_string(has);
  if (levels_.required == Domains::kCluster) return "there is room for " + known;
  const std::string name = best.node ? context_.cluster.node_name(*best.node) : context_.domains.path(best.domain);
  const std::string domain = std::string(context_.domains.level_name(levels_.required)) + " " + name;
  const std::string room = " has room for " + known;
  return bound_.empty() ? "the best " + domain + room : domain + ", where members of it are," + room;
}

std::string GangSearch::shortfall_of_kind(std::size_t kind, const std::vector<Spot>& tops) {
  const Spot* best = nullptr;
  std::int64_t has = -1;
  for (const Spot& top : tops) {
    const std::int64_t here = alone(top).of[kind];
    if (here > has) best = &top;
    has = std::max(has, here);
  }
  if (has >= kinds_[kind].min) return "";
  const GangRole& role = *kinds_[kind].like;
  const std::string who = kinds_.size() > 1 && !role.name.empty() ? " for role '" + role.name + "'" : "";
  return "needs " + count_text(kinds_[kind].min, role.pod) + who + place_text() + "; " + best_text(*best, has);
}

/// Each kind alone fits.
std::string GangSearch::shortfall_together(std::vector<Spot> tops) {
  const Spot* best = nullptr;
  std::int64_t has = -1;
  const std::int64_t need = std::max<std::int64_t>({least_.total(), request_.min, 1});
  std::stable_sort(tops.begin(), tops.end(),
                   [&](const Spot& a, const Spot& b) { return alone(a).total() > alone(b).total(); });
  tops.resize(std::min(tops.size(), kTopsInText));
  const auto count = [&](const Spot& top, const Mix& mix) {
    const std::int64_t here =
        std::min(need, request_.min > 0 && mix.covers(least_) ? mix.total() : smaller(mix, least_).total());
    if (here > has) best = &top;
    has = std::max(has, here);
  };
  for (const Spot& top : tops) {
    for (const Mix& mix : room(top)) count(top, mix);
  }
  counted_ = all_mixes_known();
  const Mix& goal = request_.min > 0 ? wanted_ : least_;
  for (const Spot& top : tops) {
    if (counted_) break;
    count(top, packer_.pack(nodes_to_pack(top), goal, [](const Mix&) { return true; })->members);
  }
  std::string what;
  for (const GangKind& kind : kinds_) {
    if (kind.min > 0) what += (what.empty() ? "" : " and ") + count_text(kind.min, kind.like->pod);
  }
  if (request_.min > least_.total()) what = std::to_string(need) + " members";
  return "needs " + what + place_text() + "; " + best_text(*best, has) + " of these " + std::to_string(need);
}

std::string GangSearch::shortfall() {
  measure_tops(false);
  const std::vector<Spot> tops = spots(levels_.required);
  if (tops.empty()) return "there is no node";
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    if (std::string text = shortfall_of_kind(k, tops); !text.empty()) return text;
  }
  return shortfall_together(tops);
}

}  // namespace mortise::placement
