#include "scheduler/kube/objects/node_sources.h"

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "scheduler/base/quantity.h"
#include "scheduler/topology/combine.h"
#include "scheduler/topology/cpu_ranges.h"
#include "scheduler/topology/machine_json.h"

namespace mortise::kube {
namespace {

using topology::Machine;
using topology::Reading;

const std::string* find_text(const std::map<std::string, std::string>& texts, std::string_view key) {
  const auto found = texts.find(std::string(key));
  return found == texts.end() ? nullptr : &found->second;
}

std::optional<Quantity> capacity_of(const Node& node, const char* resource) {
  const auto found = node.capacity.find(resource);
  if (found == node.capacity.end()) return std::nullopt;
  const Result<Quantity> amount = Quantity::parse(found->second);
  return amount ? std::optional(*amount) : std::nullopt;
}

/// NodeResourceTopology lists all NUMA nodes. A machine that has others is built or set up in another way, so that
/// nothing but its GPUs holds for the node.
void fit_to_report(Reading& labels, const topology::NodeTopologyReport& report) {
  std::set<int> ids;
  std::set<int> gpu_memory;
  for (const topology::NumaNode& numa : labels.machine.numa) (numa.memory_of_gpu ? gpu_memory : ids).insert(numa.id);
  std::set<int> reported;
  for (const topology::NumaNode& numa : report.reading.machine.numa) {
    if (!gpu_memory.contains(numa.id)) reported.insert(numa.id);
  }
  if (ids.empty() || reported.empty() || ids == reported) return;
  labels.notes.emplace_back("labels: the node has other NUMA nodes than that machine; only its GPUs are used");
  Machine gpus;
  for (const topology::Gpu& gpu : labels.machine.gpus) {
    topology::Gpu& kept = gpus.gpus.emplace_back();
    kept.index = gpu.index;
    kept.model = gpu.model;
  }
  labels.machine = std::move(gpus);
}

/// The catalogue's machine has the CPUs and memory of one of its kinds; another may have others.
void fit_to_node(Reading& labels, const Node& node) {
  std::int64_t cpus = 0;
  Bytes memory = 0;
  for (const topology::NumaNode& numa : labels.machine.numa) {
    cpus += numa.cpus ? topology::cpu_count(*numa.cpus) : 0;
    if (!numa.memory_of_gpu) memory += numa.memory.value_or(0);
  }
  const auto node_cpus = capacity_of(node, "cpu");
  if (cpus > 0 && node_cpus && node_cpus->rounded_up() != cpus) {
    labels.notes.emplace_back("labels: the node has other CPUs than that machine; where they are is not known");
    forget_cpus(labels.machine);
  }
  // Firmware and the Linux kernel keep some memory for themselves.
  const auto node_memory = capacity_of(node, "memory");
  if (memory > 0 && node_memory &&
      (node_memory->rounded_up() > memory || node_memory->rounded_up() < memory / 10 * 9)) {
    labels.notes.emplace_back("labels: the node has other memory than that machine; where it is is not known");
    forget_memory(labels.machine);
  }
}

void add(NodeReading& result, const Reading& more, std::string_view name) {
  result.told = true;
  topology::combine(result.reading, more, name);
}

void add_annotation(NodeReading& result, const Node& node) {
  const std::string* text = find_text(node.annotations, topology::kTopologyAnnotation);
  if (text == nullptr) return;
  const auto annotation = topology::read_machine_json(*text, topology::kTopologyAnnotation);
  if (annotation) {
    add(result, *annotation, "annotation");
  } else {
    result.reading.notes.push_back("annotation left out: " + annotation.message());
  }
}

Status add_labels(NodeReading& result, const Node& node, const topology::NodeTopologyReport* report,
                  topology::LazyCatalogue& catalogue) {
  const std::string* product = find_text(node.labels, "nvidia.com/gpu.product");
  if (product == nullptr || product->empty()) return ok_status();
  const auto known = catalogue.get();
  if (!known) return known.error();
  auto labels = topology::read_node_labels(node.labels, *known);
  if (!labels) {
    result.reading.notes.push_back("labels left out: " + labels.message());
    return ok_status();
  }
  if (!*labels) return ok_status();
  fit_to_node(**labels, node);
  if (report != nullptr) fit_to_report(**labels, *report);
  add(result, **labels, "labels");
  return ok_status();
}

void add_kubelet(NodeReading& result, const Node& node) {
  const std::string* text = find_text(node.annotations, kKubeletAnnotation);
  if (text == nullptr) return;
  auto settings = parse_kubelet_settings(*text);
  if (settings) {
    result.kubelet = *std::move(settings);
  } else {
    result.reading.notes.push_back("annotation " + std::string(kKubeletAnnotation) +
                                   " left out: " + settings.message());
  }
}

}  // namespace

void forget_cpus(Machine& machine) {
  for (topology::NumaNode& numa : machine.numa) numa.cpus.reset();
  for (topology::Gpu& gpu : machine.gpus) gpu.cpus.reset();
}

void forget_memory(Machine& machine) {
  for (topology::NumaNode& numa : machine.numa) {
    if (!numa.memory_of_gpu) numa.memory.reset();
  }
}

Result<NodeReading> read_node_sources(const Node* node, const topology::NodeTopologyReport* report,
                                      topology::LazyCatalogue& catalogue) {
  NodeReading result;
  if (node != nullptr) {
    result.reading.node = node->name;
    add_annotation(result, *node);
  }
  if (report != nullptr) add(result, report->reading, "NodeResourceTopology");
  if (node != nullptr) {
    if (const Status labels = add_labels(result, *node, report, catalogue); !labels) return labels.error();
    add_kubelet(result, *node);
  }
  const topology::KubeletFacts reported =
      report == nullptr ? topology::KubeletFacts{} : report->reading.machine.kubelet;
  topology::KubeletFacts& facts = result.reading.machine.kubelet;
  if (reported.policy && result.kubelet.facts.policy && *reported.policy != *result.kubelet.facts.policy) {
    result.reading.notes.push_back("annotation " + std::string(kKubeletAnnotation) + " and NodeResourceTopology say " +
                                   "different policies; the latter counts");
  }
  facts = reported.or_else(result.kubelet.facts).or_else(facts);
  return result;
}

}  // namespace mortise::kube
