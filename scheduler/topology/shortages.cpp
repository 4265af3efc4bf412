#include "scheduler/topology/shortages.h"

#include <algorithm>

namespace mortise::topology {
namespace {

std::int64_t sum_over(const std::vector<std::int64_t>& amounts, NumaMask mask) {
  std::int64_t sum = 0;
  for_each_node(mask, [&](int id) {
    if (static_cast<std::size_t>(id) < amounts.size()) sum += amounts[static_cast<std::size_t>(id)];
  });
  return sum;
}

bool has_opinion(const Supply& supply) {
  return !(supply.hints.size() == 1 && supply.hints.front() == Hint{kAnyNuma, true});
}

// The masks that would satisfy the policy as far as this resource is concerned.
std::vector<NumaMask> good_masks(const Supply& supply, bool single) {
  std::vector<NumaMask> masks;
  for (const Hint& hint : supply.hints) {
    if (hint.preferred && hint.mask != kAnyNuma && (!single || width(hint.mask) == 1)) masks.push_back(hint.mask);
  }
  std::sort(masks.begin(), masks.end(), narrower);
  return masks;
}

std::string list_of(const std::vector<NumaMask>& masks) {
  constexpr std::size_t kShown = 4;
  std::string text;
  for (std::size_t i = 0; i < masks.size() && i < kShown; ++i) text += (i > 0 ? " " : "") + to_text(masks[i]);
  return masks.size() > kShown ? text + " ..." : text;
}

Shortage shortage_on(const Supply& supply, const std::string& container, NumaMask mask) {
  Shortage shortage;
  shortage.container = container;
  shortage.resource = supply.resource;
  shortage.nodes = mask;
  shortage.asked = supply.asked;
  shortage.free = sum_over(supply.free, mask);
  shortage.installed = sum_over(supply.installed, mask);
  shortage.enough = shortage.free >= shortage.asked;
  return shortage;
}

std::string describe(const Shortage& shortage) {
  std::string text = to_text(shortage.nodes) + " has " + std::to_string(shortage.free) + " free of " +
                     std::to_string(shortage.installed);
  return shortage.enough ? text + " but may not be used" : text;
}

// Nothing that the policy accepts can hold this resource: says what each NUMA node has.
void explain_one(const Supply& supply, const std::string& container, const NumaNodes& nodes, bool single,
                 std::vector<Shortage>& shortages, std::string& line) {
  line += (line.empty() ? "" : "; ") + supply.resource + " asks " + std::to_string(supply.asked) + ": ";
  if (supply.total_free < supply.asked) {
    Shortage shortage = shortage_on(supply, container, nodes.all);
    shortage.free = supply.total_free;
    shortage.enough = false;
    line += "the node has " + std::to_string(supply.total_free) + " free";
    shortages.push_back(shortage);
    return;
  }
  bool first = true;
  for_each_node(nodes.all, [&](int id) {
    const Shortage shortage = shortage_on(supply, container, numa_bit(id));
    line += (first ? "" : ", ") + describe(shortage);
    first = false;
    shortages.push_back(shortage);
  });
  std::vector<NumaMask> possible;
  for (const Hint& hint : supply.hints) {
    if (hint.mask != kAnyNuma) possible.push_back(hint.mask);
  }
  std::sort(possible.begin(), possible.end(), narrower);
  if (possible.empty()) {
    line += "; no set of NUMA nodes holds it";
  } else {
    line += std::string(single ? "; one node is required and it fits only "
                               : "; fewer nodes would do if they were free, it fits only ") +
            list_of(possible);
  }
}

// Every resource has its place, but not the same one: per node, who is missing there.
void explain_conflict(const std::vector<const Supply*>& aligned, const std::string& container, bool single,
                      std::vector<Shortage>& shortages, std::string& line) {
  std::vector<NumaMask> wanted;
  for (const Supply* supply : aligned) {
    const std::vector<NumaMask> good = good_masks(*supply, single);
    wanted.insert(wanted.end(), good.begin(), good.end());
    line += (line.empty() ? "" : ", ") + supply->resource + " (" + std::to_string(supply->asked) + ") wants " +
            list_of(good);
  }
  std::sort(wanted.begin(), wanted.end(), narrower);
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  for (const NumaMask mask : wanted) {
    for (const Supply* supply : aligned) {
      const std::vector<NumaMask> good = good_masks(*supply, single);
      if (std::find(good.begin(), good.end(), mask) == good.end()) {
        shortages.push_back(shortage_on(*supply, container, mask));
      }
    }
  }
  line += ": no NUMA nodes that all of them prefer";
}

}  // namespace

void explain_refusal(const KubeletConfig& config, const NumaNodes& nodes, const std::string& container,
                     const std::vector<Supply>& supplies, const Merged& merged, std::vector<Shortage>& shortages,
                     std::string& why) {
  const bool single = config.policy == TopologyPolicy::kSingleNumaNode;
  std::vector<const Supply*> aligned;
  std::string line;
  for (const Supply& supply : supplies) {
    if (!has_opinion(supply)) continue;
    aligned.push_back(&supply);
    if (good_masks(supply, single).empty()) explain_one(supply, container, nodes, single, shortages, line);
  }
  if (line.empty()) explain_conflict(aligned, container, single, shortages, line);
  why = (container.empty() ? std::string("pod") : "container " + container) + ", policy " +
        std::string(to_text(config.policy)) + ": " + line;
  if (merged.affinity != kAnyNuma) why += " (best is " + to_text(merged.affinity) + ", not preferred)";
}

}  // namespace mortise::topology
