#include "sim/topo_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "scheduler/base/quote.h"
#include "scheduler/topology/machine_json.h"
#include "scheduler/topology/pcie_tree.h"
#include "scheduler/topology/sources/synthetic.h"
#include "sim/tables.h"

namespace mortise::sim {
namespace {

using topology::NodeGraph;
using Json = nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

std::vector<int> indexes(const NodeGraph& graph, const std::vector<int>& gpus) {
  std::vector<int> result;
  for (const int gpu : gpus) result.push_back(graph.gpu(gpu).index);
  return result;
}

Json pair_links(const NodeGraph& graph) {
  Json links = Json::array();
  for (int a = 0; a < graph.gpu_count(); ++a) {
    for (int b = a + 1; b < graph.gpu_count(); ++b) {
      const topology::PairLink& pair = graph.link(a, b);
      const std::string name = to_text(pair);
      const auto bandwidth = graph.mb_per_s(a, b);
      Json link = {{"a", graph.gpu(a).index},
                   {"b", graph.gpu(b).index},
                   {"class", name.empty() ? Json() : Json(name)},
                   {"nvlinks", pair.nvlinks},
                   {"mb_per_s", bandwidth ? Json(*bandwidth) : Json()}};
      if (pair.nvlinks > 0) link["switched"] = pair.switched;
      links.push_back(std::move(link));
    }
  }
  return links;
}

Json nic_links(const NodeGraph& graph) {
  Json links = Json::array();
  for (int gpu = 0; gpu < graph.gpu_count(); ++gpu) {
    for (std::size_t nic = 0; nic < graph.machine().nics.size(); ++nic) {
      const topology::LinkClass link = graph.nic_link(gpu, static_cast<int>(nic));
      links.push_back({{"gpu", graph.gpu(gpu).index},
                       {"nic", graph.machine().nics[nic].name},
                       {"class", link == topology::LinkClass::kUnknown ? Json() : Json(to_text(link))}});
    }
  }
  return links;
}

std::string nearest_text(const NodeGraph& graph, int gpu) {
  std::string text;
  for (const int nic : graph.nearest_nics(gpu)) {
    text += (text.empty() ? "" : ",") + graph.nic(nic).name;
  }
  if (text.empty()) return "-";
  return text + " " + std::string(to_text(graph.nic_link(gpu, graph.nearest_nics(gpu).front())));
}

std::string gpu_table(const NodeGraph& graph) {
  Rows rows = {{"GPU", "model", "NUMA", "CPUs", "nearest NICs"}};
  for (int i = 0; i < graph.gpu_count(); ++i) {
    const topology::Gpu& gpu = graph.gpu(i);
    rows.push_back({std::to_string(gpu.index), or_dash(one_line(gpu.model)),
                    or_dash(fmt::format("{}", fmt::join(gpu.numa, ","))), gpu.cpus ? or_dash(to_text(*gpu.cpus)) : "-",
                    nearest_text(graph, i)});
  }
  return align_columns(rows, {true, false, true, false, false});
}

template <class Cell>
std::string pair_table(const NodeGraph& graph, const Cell& cell) {
  Rows rows = {{""}};
  for (int b = 0; b < graph.gpu_count(); ++b) rows.front().push_back(fmt::format("GPU{}", graph.gpu(b).index));
  for (int a = 0; a < graph.gpu_count(); ++a) {
    rows.push_back({fmt::format("GPU{}", graph.gpu(a).index)});
    for (int b = 0; b < graph.gpu_count(); ++b) rows.back().push_back(a == b ? "X" : cell(a, b));
  }
  return align_columns(rows, std::vector<bool>(rows.front().size(), true));
}

std::string numa_table(const NodeGraph& graph) {
  Rows rows = {{"NUMA", "socket", "CPUs", "memory", "distances", ""}};
  for (const topology::NumaNode& node : graph.machine().numa) {
    std::string distances;
    for (const topology::NumaDistance& distance : node.distances) {
      distances += fmt::format("{}{}", distances.empty() ? "" : " ", distance.value);
    }
    std::string cpus = node.cpus ? (node.cpus->empty() ? "none" : to_text(*node.cpus)) : "-";
    if (!node.cpus && node.cpu_count) cpus = fmt::format("{} of them", *node.cpu_count);
    rows.push_back({std::to_string(node.id), node.socket ? std::to_string(*node.socket) : "-", cpus,
                    node.memory ? bytes_text(*node.memory) : "-", or_dash(distances),
                    node.memory_of_gpu ? fmt::format("memory of GPU {}", *node.memory_of_gpu) : ""});
  }
  return align_columns(rows, {true, true, false, true, false, false});
}

std::vector<int> indexes(const NodeGraph& graph, topology::GpuSet set) {
  std::vector<int> result;
  topology::for_each_gpu(set, [&](int gpu) { result.push_back(graph.gpu(gpu).index); });
  return result;
}

// The NUMA nodes a set reaches into; empty where that is not known of one of its GPUs.
std::set<int> numa_of(const NodeGraph& graph, topology::GpuSet set) {
  std::set<int> ids;
  bool known = graph.machine().gpus_numbered;
  topology::for_each_gpu(set, [&](int gpu) {
    const topology::DevicePlace place = place_of(graph.machine(), graph.gpu(gpu));
    known = known && !place.numa.empty();
    ids.insert(place.numa.begin(), place.numa.end());
  });
  return known ? ids : std::set<int>();
}

// The NICs that one of the set's GPUs has nearest, by position, with their class.
std::map<int, topology::LinkClass> nics_of(const NodeGraph& graph, topology::GpuSet set) {
  std::map<int, topology::LinkClass> nics;
  topology::for_each_gpu(set, [&](int gpu) {
    for (const int nic : graph.nearest_nics(gpu)) {
      const auto [entry, added] = nics.emplace(nic, graph.nic_link(gpu, nic));
      if (!added) entry->second = std::min(entry->second, graph.nic_link(gpu, nic));
    }
  });
  return nics;
}

void put_values(Json& json, topology::Objective objective, const std::optional<topology::SetValue>& value) {
  json["mb_per_s"] = value ? Json(figure_of(objective, *value)) : Json();
  json["bottleneck_mb_per_s"] = value ? Json(value->bottleneck) : Json();
  json["ring_mb_per_s"] = value ? Json(value->ring) : Json();
  json["total_mb_per_s"] = value ? Json(value->total) : Json();
}

Json best_json(const NodeGraph& graph, const BestAnswer& answer, const BestSet& best) {
  const auto& [gpus, value] = best.chosen;
  Json json = {{"k", best.count}, {"gpus", gpus != 0 ? Json(indexes(graph, gpus)) : Json()}};
  put_values(json, answer.objective, value);
  json["objective"] = name_of(answer.objective);
  const std::set<int> numa = numa_of(graph, gpus);
  json["numa_nodes"] = numa.empty() ? Json() : Json(numa);
  json["nearest_nics"] = Json::array();
  for (const auto& [nic, link] : nics_of(graph, gpus)) {
    json["nearest_nics"].push_back({{"nic", graph.nic(nic).name}, {"class", to_text(link)}});
  }
  json["all_free"] = Json();
  if (best.all_free.gpus != 0) {
    json["all_free"] = {{"gpus", indexes(graph, best.all_free.gpus)}};
    put_values(json["all_free"], answer.objective, best.all_free.value);
  }
  json["share_of_all_free"] = best.share ? Json(*best.share) : Json();
  if (answer.objective == topology::Objective::kNvidia) {
    json["may_pick"] = best.may_pick;
    json["may_fail"] = best.may_fail;
  }
  if (gpus == 0) json["why"] = best.why_none;
  return json;
}

void put_cells(std::vector<std::string>& row, const NodeGraph& graph, const RatedSet& set) {
  row.push_back(or_dash(fmt::format("{}", fmt::join(indexes(graph, set.gpus), ","))));
  const bool pair = topology::size_of(set.gpus) > 1 && set.value;
  row.push_back(pair ? std::to_string(set.value->bottleneck) : "-");
  row.push_back(pair ? std::to_string(set.value->ring) : "-");
  row.push_back(pair ? std::to_string(set.value->total) : "-");
}

// NICs by class: "NIC0,NIC1 PIX; NIC2 SYS".
std::string nics_text(const NodeGraph& graph, topology::GpuSet set) {
  std::map<topology::LinkClass, std::vector<std::string>> names;
  for (const auto& [nic, link] : nics_of(graph, set)) {
    names[link].push_back(graph.nic(nic).name);
  }
  std::vector<std::string> parts;
  for (const auto& [link, list] : names) parts.push_back(fmt::format("{} {}", fmt::join(list, ","), to_text(link)));
  return or_dash(fmt::format("{}", fmt::join(parts, "; ")));
}

std::string remark_on(const BestAnswer& answer, const BestSet& best) {
  if (best.chosen.gpus == 0) return "none: " + best.why_none;
  if (answer.objective != topology::Objective::kNvidia || (best.may_pick == 1 && !best.may_fail)) return {};
  return fmt::format("one of {} it may pick{}", best.may_pick, best.may_fail ? ", or it fails" : "");
}

}  // namespace

std::string bytes_text(Bytes bytes) {
  const auto mib = static_cast<double>(bytes) / static_cast<double>(kMiB);
  if (mib >= 1024 * 1024) return fmt::format("{:.4g} TiB", mib / 1024 / 1024);
  if (mib >= 1024) return fmt::format("{:.4g} GiB", mib / 1024);
  return fmt::format("{:.4g} MiB", mib);
}

std::string topo_json(const NodeGraph& graph, const std::optional<BestAnswer>& best) {
  Json json = topology::to_json(graph.machine());
  json["links"] = pair_links(graph);
  json["nic_links"] = nic_links(graph);
  json["nvlink_domains"] = Json::array();
  for (const auto& domain : graph.nvlink_domains()) json["nvlink_domains"].push_back(indexes(graph, domain));
  if (best) {
    json["best"] = Json::array();
    for (const BestSet& set : best->sets) json["best"].push_back(best_json(graph, *best, set));
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string best_text(const NodeGraph& graph, const BestAnswer& best) {
  Rows rows = {{"k", "GPUs", "bottleneck", "ring", "total", "NUMA", "nearest NICs", "|", "all free", "bottleneck",
                "ring", "total", "share", ""}};
  for (const BestSet& set : best.sets) {
    std::vector<std::string> row = {std::to_string(set.count)};
    put_cells(row, graph, set.chosen);
    row.push_back(or_dash(fmt::format("{}", fmt::join(numa_of(graph, set.chosen.gpus), ","))));
    row.push_back(nics_text(graph, set.chosen.gpus));
    row.emplace_back("|");
    put_cells(row, graph, set.all_free);
    row.push_back(set.share ? fmt::format("{:.0f} %", 100 * *set.share) : "-");
    row.push_back(remark_on(best, set));
    rows.push_back(std::move(row));
  }
  return fmt::format("Best sets by {} of the free GPUs {}; MB/s, one direction, nominal\n", name_of(best.objective),
                     fmt::join(indexes(graph, best.free), ",")) +
         align_columns(rows,
                       {true, false, true, true, true, false, false, false, false, true, true, true, true, false});
}

std::string topo_text(const NodeGraph& graph) {
  std::string text = gpu_table(graph);
  if (graph.gpu_count() > 1) {
    text += "\nLinks\n" + pair_table(graph, [&](int a, int b) { return or_dash(to_text(graph.link(a, b))); });
    text += "\nMB/s, one direction, nominal\n" + pair_table(graph, [&](int a, int b) {
              const auto bandwidth = graph.mb_per_s(a, b);
              return bandwidth ? std::to_string(*bandwidth) : std::string("-");
            });
  }
  if (!graph.machine().numa.empty()) text += "\n" + numa_table(graph);
  for (const auto& domain : graph.nvlink_domains()) {
    text += fmt::format("\nNVLink domain: GPUs {}", fmt::join(indexes(graph, domain), ", "));
  }
  if (!graph.nvlink_domains().empty()) text += "\n";
  const topology::KubeletFacts& kubelet = graph.machine().kubelet;
  if (kubelet.policy) {
    const bool pod = kubelet.scope.value_or(topology::TopologyScope::kContainer) == topology::TopologyScope::kPod;
    text += fmt::format("\nkubelet: Topology Manager policy {}, scope {}\n", to_text(*kubelet.policy),
                        pod ? "pod" : "container");
  }
  if (const auto synthetic = topology::to_synthetic(graph.machine())) text += "\nsynthetic: " + *synthetic + "\n";
  return text;
}

}  // namespace mortise::sim
