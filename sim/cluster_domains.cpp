#include "sim/cluster_domains.h"

#include <string>
#include <utility>

#include "scheduler/base/quote.h"
#include "sim/option_values.h"

namespace mortise::sim {

using placement::Domains;
using placement::TopologyLevel;

Domains make_domains(const placement::ClusterState& cluster, const kube::ClusterFile& file,
                     const std::vector<TopologyLevel>& levels) {
  Domains domains = levels.empty() ? Domains(cluster) : Domains(cluster, levels);
  for (std::size_t i = 0; i < file.nodes.size(); ++i) {
    std::vector<placement::Label> labels;
    if (i < file.labels.size()) labels.assign(file.labels[i].begin(), file.labels[i].end());
    if (const auto node = cluster.find_node(file.nodes[i].name)) domains.set_node(*node, labels);
  }
  domains.refresh();
  return domains;
}

Result<std::vector<TopologyLevel>> parse_levels(std::string_view text) {
  std::vector<TopologyLevel> levels;
  if (text.empty()) return levels;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      return Error{"--levels " + quote(text) + ": " + quote(part) +
                   " is not NAME=LABEL; allowed: NAME=LABEL,... from " + "coarse to fine"};
    }
    levels.push_back({std::string(part.substr(0, equals)), std::string(part.substr(equals + 1))});
  }
  if (const Status status = placement::check_levels(levels); !status) {
    return Error{"--levels " + quote(text) + ": " + status.message()};
  }
  return levels;
}

Status check_level(const Domains& domains, std::string_view level) {
  if (level.empty() || domains.find_level(level)) return ok_status();
  std::string known;
  for (const TopologyLevel& there : domains.levels()) known += there.name + ", ";
  return Error{"the cluster has no topology level " + quote(level) + "; known: " + known +
               std::string(placement::kNodeLevelName)};
}

}  // namespace mortise::sim
