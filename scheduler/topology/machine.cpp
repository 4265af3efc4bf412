#include "scheduler/topology/machine.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "scheduler/base/quote.h"
#include "scheduler/topology/numa_mask.h"

namespace mortise::topology {
namespace {

constexpr std::array<std::string_view, 7> kClassNames = {"PIX", "PXB", "PHB", "NODE", "SYS", "SOC", ""};

std::string named(std::string_view what, int id) {
  return std::string(what) + " " + std::to_string(id);
}

bool ascending_ids(const std::vector<int>& ids) {
  return std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>()) == ids.end();
}

class Checker {
 public:
  explicit Checker(const Machine& machine) : machine_(machine) {}

  Status run() {
    check_numa();
    check_distances();
    check_bridges();
    check_gpus();
    check_nics();
    check_gpu_links();
    check_nic_links();
    if (!problem_.empty()) return Error{problem_};
    return ok_status();
  }

 private:
  void require(bool good, const std::string& what) {
    if (!good && problem_.empty()) problem_ = what;
  }

  void check_numa() {
    int last = -1;
    for (const NumaNode& node : machine_.numa) {
      const std::string name = named("NUMA node", node.id);
      require(node.id > last, name + " is out of order or named twice");
      require(node.id < kMaxNumaNodes, name + ": ids end at " + std::to_string(kMaxNumaNodes - 1));
      require(!node.memory || *node.memory >= 0, name + " has a negative amount of memory");
      last = node.id;
      ids_.insert(node.id);
      for (const NumaNode& other : machine_.numa) {
        if (other.id >= node.id) break;
        require(!other.cpus || !node.cpus || !overlap(*other.cpus, *node.cpus),
                name + " shares CPUs with NUMA node " + std::to_string(other.id));
      }
    }
  }

  void check_distances() {
    for (const NumaNode& node : machine_.numa) {
      int last = -1;
      for (const NumaDistance& distance : node.distances) {
        const std::string name = named("NUMA node", node.id) + ": distance to " + std::to_string(distance.to);
        require(distance.to > last, name + " is out of order or given twice");
        require(ids_.contains(distance.to), name + ", which is no NUMA node of the machine");
        require(distance.value > 0, name + " is not positive");
        last = distance.to;
      }
    }
  }

  void check_ids(const std::vector<int>& ids, const std::string& name) {
    require(ascending_ids(ids), name + ": NUMA ids are out of order");
    for (const int id : ids)
      require(ids_.contains(id), name + " is on NUMA node " + std::to_string(id) + ", which is unknown");
  }

  void check_bridges() {
    for (std::size_t i = 0; i < machine_.bridges.size(); ++i) {
      const Bridge& bridge = machine_.bridges[i];
      const std::string name = named("bridge", static_cast<int>(i));
      const bool host = bridge.kind == BridgeKind::kHostBridge;
      require(host == (bridge.parent == -1), name + (host ? " is a host bridge with a parent" : " has no parent"));
      require(bridge.parent >= -1 && bridge.parent < static_cast<int>(i), name + " stands before its parent");
      require(host || bridge.numa.empty(), name + ": only host bridges name a NUMA node");
      check_ids(bridge.numa, name);
    }
  }

  void check_place(const std::optional<int>& bridge, const std::string& name) {
    require(!bridge || (*bridge >= 0 && *bridge < static_cast<int>(machine_.bridges.size())),
            name + " hangs on a bridge that is not there");
  }

  void check_gpus() {
    require(machine_.gpus.size() <= kMaxGpus, "more than " + std::to_string(kMaxGpus) + " GPUs");
    std::set<std::string_view> uuids;
    int last = -1;
    for (const Gpu& gpu : machine_.gpus) {
      const std::string name = named("GPU", gpu.index);
      require(gpu.index > last, name + " is out of order or named twice");
      require(gpu.uuid.empty() || uuids.insert(gpu.uuid).second, name + " has the UUID of another GPU");
      check_ids(gpu.numa, name);
      check_place(gpu.bridge, name);
      last = gpu.index;
    }
  }

  void check_nics() {
    require(machine_.nics.size() <= kMaxNics, "more than " + std::to_string(kMaxNics) + " NICs");
    std::set<std::string_view> names;
    for (const Nic& nic : machine_.nics) {
      const std::string name = "NIC " + quote(nic.name);
      require(!nic.name.empty(), "a NIC has no name");
      require(names.insert(nic.name).second, name + " is named twice");
      check_ids(nic.numa, name);
      check_place(nic.bridge, name);
    }
  }

  void check_gpu_links() {
    std::pair last{-1, -1};
    for (const GpuLink& link : machine_.gpu_links) {
      const std::string name = "link " + std::to_string(link.a) + "-" + std::to_string(link.b);
      const std::pair place{link.a, link.b};
      require(link.a >= 0 && link.a < link.b && link.b < static_cast<int>(machine_.gpus.size()),
              name + " does not join two GPUs");
      require(place > last, name + " is out of order or given twice");
      require(link.nvlinks >= 0 && link.nvlinks <= kMaxNvLinks, name + ": number of NVLinks out of range");
      last = place;
    }
  }

  void check_nic_links() {
    std::pair last{-1, -1};
    for (const NicLink& link : machine_.nic_links) {
      const std::pair place{link.gpu, link.nic};
      const bool inside = link.gpu >= 0 && link.gpu < static_cast<int>(machine_.gpus.size()) && link.nic >= 0 &&
                          link.nic < static_cast<int>(machine_.nics.size());
      require(inside, "a NIC link names a device that is not there");
      require(place > last, "a NIC link is out of order or given twice");
      last = place;
    }
  }

  const Machine& machine_;
  std::set<int> ids_;
  std::string problem_;
};

}  // namespace

std::string_view to_text(LinkClass link) {
  return kClassNames[static_cast<std::size_t>(link)];
}

std::optional<LinkClass> parse_link_class(std::string_view text) {
  const auto* found = std::find(kClassNames.begin(), kClassNames.end() - 1, text);
  if (found == kClassNames.end() - 1) return std::nullopt;
  return static_cast<LinkClass>(found - kClassNames.begin());
}

Status check(const Machine& machine) {
  return Checker(machine).run();
}

NumaNode& numa_node(Machine& machine, int id) {
  const auto place = std::lower_bound(machine.numa.begin(), machine.numa.end(), id,
                                      [](const NumaNode& node, int wanted) { return node.id < wanted; });
  if (place != machine.numa.end() && place->id == id) return *place;
  NumaNode node;
  node.id = id;
  return *machine.numa.insert(place, std::move(node));
}

void add_named_numa(Machine& machine) {
  for (const Gpu& gpu : machine.gpus) {
    for (const int id : gpu.numa) numa_node(machine, id);
  }
  for (const Nic& nic : machine.nics) {
    for (const int id : nic.numa) numa_node(machine, id);
  }
  for (const Bridge& bridge : machine.bridges) {
    for (const int id : bridge.numa) numa_node(machine, id);
  }
}

Machine without_identity(Machine machine) {
  for (Bridge& bridge : machine.bridges) bridge.bus_id.clear();
  for (Gpu& gpu : machine.gpus) {
    gpu.uuid.clear();
    gpu.bus_id.clear();
  }
  for (Nic& nic : machine.nics) nic.bus_id.clear();
  return machine;
}

}  // namespace mortise::topology
