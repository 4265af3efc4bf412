#include "scheduler/kube/objects/node_pools.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>

#include "scheduler/base/quote.h"
#include "scheduler/kube/objects/node_topology.h"
#include "scheduler/topology/cpu_ranges.h"

namespace mortise::kube {
namespace {

using placement::NodeSpec;
using topology::CatalogueMachine;

/// A number with at least so many digits, so that names sort as they are numbered.
std::string padded(int number, std::size_t digits) {
  std::string text = std::to_string(number);
  return std::string(digits - std::min(digits, text.size()), '0') + text;
}

struct Size {
  std::int64_t cpus = 0;
  Bytes memory = 0;
};

Size size_of(const topology::Machine& machine) {
  Size size;
  for (const topology::NumaNode& numa : machine.numa) {
    size.cpus += numa.cpus ? topology::cpu_count(*numa.cpus) : numa.cpu_count.value_or(0);
    if (!numa.memory_of_gpu) size.memory += numa.memory.value_or(0);
  }
  return size;
}

std::string model_of(const NodePool& pool, const ClusterOptions& options) {
  const CatalogueMachine& machine = *pool.machine;
  if (!pool.model.empty()) return pool.model;
  if (options.trace_models && !machine.trace_model.empty()) return machine.trace_model;
  return machine.machine.gpus.empty() ? std::string() : machine.machine.gpus.front().model;
}

/// A node of the pool but for its name.
Result<NodeSpec> pool_node(const NodePool& pool, const ClusterOptions& options, NodeTopologies& topologies) {
  const topology::Machine& machine = pool.machine->machine;
  const Size size = size_of(machine);
  if ((pool.cpu.empty() && size.cpus == 0) || (pool.memory.empty() && size.memory == 0)) {
    return Error{pool.where + "the catalogue does not tell CPUs and memory of " + pool.machine->name +
                 "; give cpu and memory"};
  }
  Node node;
  node.name = pool.prefix;
  node.allocatable = {{"cpu", pool.cpu.empty() ? std::to_string(size.cpus) : pool.cpu},
                      {"memory", pool.memory.empty() ? std::to_string(size.memory) : pool.memory},
                      {"nvidia.com/gpu", std::to_string(machine.gpus.size())}};
  if (!pool.pods.empty()) node.allocatable.emplace("pods", pool.pods);
  Result<NodeSpec> spec = node_spec(node);
  if (!spec) return Error{pool.where + spec.message()};
  spec->model = model_of(pool, options);
  topology::Machine own = machine;
  own.kubelet = pool.kubelet.facts.or_else(machine.kubelet);
  auto topology = topologies.make(std::move(own), pool.kubelet, *spec, nullptr);
  if (!topology) return Error{pool.where + topology.message()};
  spec->topology = *std::move(topology);
  return spec;
}

}  // namespace

bool looks_like_pool_list(std::string_view text) {
  return text.find(':') != std::string_view::npos && text.find('/') == std::string_view::npos;
}

Result<std::vector<NodePool>> read_pool_list(std::string_view text, topology::LazyCatalogue& catalogue) {
  const auto machines = catalogue.get();
  if (!machines) return machines.error();
  const std::string where = quote(text) + ": ";
  std::vector<NodePool> pools;
  for (std::size_t start = 0; start <= text.size();) {
    const std::string_view part = text.substr(start, text.substr(start).find(','));
    start += part.size() + 1;
    const std::size_t colon = part.rfind(':');
    NodePool pool;
    const std::string_view count = colon == std::string_view::npos ? std::string_view() : part.substr(colon + 1);
    const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), pool.count);
    if (error != std::errc() || end != count.data() + count.size() || pool.count < 1 || pool.count > kMaxPoolNodes) {
      return Error{where + quote(part) + " is no MACHINE:COUNT with a count from 1 to " +
                   std::to_string(kMaxPoolNodes)};
    }
    const auto machine = (*machines)->find(part.substr(0, colon));
    if (!machine) return Error{where + machine.message()};
    pool.where = where;
    pool.machine = *machine;
    pool.prefix = pool.machine->name;
    pools.push_back(std::move(pool));
  }
  return pools;
}

Result<ClusterFile> expand_pools(const std::vector<NodePool>& pools, const ClusterOptions& options,
                                 topology::LazyCatalogue& catalogue) {
  ClusterFile file;
  Notes notes;
  NodeTopologies topologies(catalogue, notes);
  std::map<std::string, int> numbered;  // nodes so far, by prefix
  std::map<std::string, int> racks;
  for (const NodePool& pool : pools) {
    if (pool.count > kMaxPoolNodes - static_cast<int>(file.nodes.size())) {
      return Error{pool.where + "more than " + std::to_string(kMaxPoolNodes) + " nodes in all pools together"};
    }
    Result<NodeSpec> node = pool_node(pool, options, topologies);
    if (!node) return node.error();
    int& next = numbered[pool.prefix];
    int& next_rack = racks[pool.prefix];
    for (int i = 0; i < pool.count; ++i) {
      node->name = pool.prefix + "-" + padded(next++, 4);
      file.nodes.push_back(*node);
      Labels& labels = file.labels.emplace_back(pool.labels);
      if (pool.rack_size == 0) continue;
      labels[pool.rack_label] = pool.prefix + "-rack-" + padded(next_rack + i / pool.rack_size, 3);
    }
    if (pool.rack_size > 0) next_rack += (pool.count + pool.rack_size - 1) / pool.rack_size;
  }
  return file;
}

}  // namespace mortise::kube
