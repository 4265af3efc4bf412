#include <algorithm>
#include <array>
#include <charconv>

#include "scheduler/placement/policies/policies.h"
#include "scheduler/placement/policies/weighted_sum.h"

namespace mortise::placement {

namespace {
struct Row {
  PolicyInfo info;
  PolicyMaker* make;
};

constexpr std::array kRows = {
    Row{{"random", "a feasible node at random, a share on a random GPU", false, ""}, make_random},
    Row{{"first-fit", "the first feasible node in rank order", true, ""}, make_first_fit},
    Row{{"best-fit", "the least CPU and GPU left on the node", false, ""}, make_best_fit},
    Row{{"dot-product", "least alignment of what is free and what is asked for", false, ""}, make_dot_product},
    Row{{"gpu-packing", "GPUs in use first, then nodes in use, then idle nodes", false, ""}, make_gpu_packing},
    Row{{"gpu-clustering", "nodes that run pods of the same kind first", false, ""}, make_gpu_clustering},
    Row{{"fgd", "fragmentation gradient descent: the least growth of expected fragmentation", false,
         "tie=rank|best-fit|random (default rank), step=MILLI (points of MILLI milli-GPU; default: published sigmoid)"},
        make_fgd},
    Row{{"topology", "the fastest GPU set, then the fastest sets left for others; for nodes whose topology is known",
         true, "objective=bottleneck|ring|total (default bottleneck)"},
        make_topology},
};

constexpr std::array kInfos = [] {
  std::array<PolicyInfo, kRows.size()> infos{};
  std::transform(kRows.begin(), kRows.end(), infos.begin(), [](const Row& row) { return row.info; });
  return infos;
}();

std::string known_names() {
  std::string names;
  for (const PolicyInfo& info : kInfos) names += (names.empty() ? "" : ", ") + std::string(info.name);
  return names;
}

Result<std::unique_ptr<Policy>> make_one(std::string_view text, const TypicalPods& typical) {
  const std::string_view name = text.substr(0, text.find(':'));
  const auto row = std::find_if(kRows.begin(), kRows.end(), [&](const Row& r) { return r.info.name == name; });
  if (row == kRows.end()) return Error{"unknown policy '" + std::string(name) + "'; known: " + known_names()};
  PolicyOptions options(text.substr(name.size()));
  auto policy = row->make(options, typical);
  if (policy) return policy;
  const std::string help = row->info.options.empty() ? "it takes no options" : std::string(row->info.options);
  return Error{"policy '" + std::string(name) + "': " + policy.message() + "; options: " + help};
}

Result<WeightedSum::Term> make_term(std::string_view text, const TypicalPods& typical) {
  std::int64_t weight = 1;
  constexpr std::int64_t kMaxWeight = 1000;
  if (const std::size_t star = text.find('*'); star != std::string_view::npos) {
    const auto [end, status] = std::from_chars(text.data(), text.data() + star, weight);
    if (status != std::errc{} || end != text.data() + star || weight < 1 || weight > kMaxWeight) {
      return Error{"policy weight '" + std::string(text.substr(0, star)) + "'; allowed: 1.." +
                   std::to_string(kMaxWeight)};
    }
    text.remove_prefix(star + 1);
  }
  auto policy = make_one(text, typical);
  if (!policy) return policy.error();
  return WeightedSum::Term{std::move(*policy), weight};
}
}  // namespace

std::span<const PolicyInfo> policy_table() {
  return kInfos;
}

Result<std::unique_ptr<Policy>> make_policy(std::string_view spelling, const TypicalPods& typical) {
  if (spelling.find_first_of("+*") == std::string_view::npos) return make_one(spelling, typical);
  std::vector<WeightedSum::Term> terms;
  for (std::string_view rest = spelling;;) {
    const std::string_view part = rest.substr(0, rest.find('+'));
    auto term = make_term(part, typical);
    if (!term) return term.error();
    terms.push_back(std::move(*term));
    if (part.size() == rest.size()) break;
    rest.remove_prefix(part.size() + 1);
  }
  return std::unique_ptr<Policy>(std::make_unique<WeightedSum>(std::move(terms)));
}

}  // namespace mortise::placement
