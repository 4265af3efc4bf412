#include "sim/cluster_domains.h"

#include <string>

#include "scheduler/base/quote.h"

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

Status check_level(const Domains& domains, std::string_view level) {
  if (level.empty() || domains.find_level(level)) return ok_status();
  std::string known;
  for (const TopologyLevel& there : domains.levels()) known += there.name + ", ";
  return Error{"the cluster has no topology level " + quote(level) + "; known: " + known +
               std::string(placement::kNodeLevelName)};
}

}  // namespace mortise::sim
