// Whatever gangs come to whatever racks: each is placed whole or not at all, and where it asks for one rack in one.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "sim/replay.h"
#include "tests/support/for_all.h"
#include "tests/unit/sim/small_world.h"
#include "traces/openb.h"

namespace mortise::sim {
namespace {

struct World {
  kube::ClusterFile cluster;
  std::map<std::string, std::string> rack_of;  // by node
  std::string rows;
  std::string order;
  std::set<std::string> in_one_rack;  // gangs
};

World any_world() {
  World world;
  const int nodes = *rc::gen::inRange(1, 8);
  for (int n = 0; n < nodes; ++n) {
    const std::string name = "n" + std::to_string(n);
    world.cluster.nodes.push_back(make_node(name, *rc::gen::inRange(1, 5)));
    world.rack_of[name] = "r" + std::to_string(*rc::gen::inRange(0, 3));
    world.cluster.labels.push_back({{"topology.kubernetes.io/rack", world.rack_of[name]}});
  }
  const int gangs = *rc::gen::inRange(1, 6);
  for (int g = 0; g < gangs; ++g) {
    const std::string gang = "g" + std::to_string(g);
    const bool required = *rc::gen::arbitrary<bool>();
    if (required) world.in_one_rack.insert(gang);
    for (int role = 0; role < *rc::gen::inRange(1, 3); ++role) {
      const int gpus = *rc::gen::element(0, 1, 1, 2, 4);
      const int milli = gpus == 1 ? *rc::gen::element(300, 500, 1000) : 1000;
      world.rows += gang + "-r" + std::to_string(role) + "," + std::to_string(*rc::gen::inRange(0, 4000)) + ",1," +
                    std::to_string(gpus) + "," + std::to_string(milli) + "," + gang + "," +
                    std::to_string(*rc::gen::inRange(2, 5)) + "," + (required ? "rack" : "") + "\n";
    }
    world.order += gang + "\n" + (*rc::gen::arbitrary<bool>() ? gang + "\n" : "");
  }
  return world;
}

/// Of one arrival of a gang: the nodes of its pods, "FAIL" for none. A pod is "GANG-rROLE-MEMBER[-clone-N]".
using Arrivals = std::map<std::string, std::vector<std::string>>;

Arrivals arrivals_in(const std::string& placements) {
  Arrivals arrivals;
  std::istringstream lines(placements);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string pod;
    std::string node;
    words >> pod >> node;
    const std::size_t clone = pod.find("-clone-");
    const std::string times = clone == std::string::npos ? "" : pod.substr(clone);
    arrivals[pod.substr(0, pod.find('-')) + times].push_back(node);
  }
  return arrivals;
}

TEST(GangReplayProperty, EachGangIsPlacedWholeOrNotAtAllAndWhereItMustBe) {
  std::int64_t placed = 0;
  std::int64_t failed = 0;
  test::for_all(1000, [&] {
    const World world = any_world();
    std::istringstream in("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gang,gang_size,topology_required\n" +
                          world.rows);
    auto trace = traces::read_openb(in, "jobs.csv");
    RC_ASSERT(trace.ok());
    const Workload workload(*std::move(trace));
    std::ostringstream placements;
    ReplayHooks hooks;
    hooks.placements = &placements;
    const std::string policy = *rc::gen::element<std::string>("random", "fgd", "best-fit", "topology");
    const auto run = replay({world.cluster, nullptr, workload, arrive_in_order(world.order), policy, 1}, hooks);
    RC_ASSERT(run.ok());
    RC_ASSERT(run->pods_arrived == run->pods_placed + run->pods_failed);
    for (const auto& [arrival, nodes] : arrivals_in(placements.str())) {
      const auto fails = std::count(nodes.begin(), nodes.end(), "FAIL");
      RC_ASSERT(fails == 0 || static_cast<std::size_t>(fails) == nodes.size());
      ++(fails == 0 ? placed : failed);
      if (fails > 0 || !world.in_one_rack.contains(arrival.substr(0, arrival.find('-')))) continue;
      std::set<std::string> racks;
      for (const std::string& node : nodes) racks.insert(world.rack_of.at(node));
      RC_ASSERT(racks.size() == 1U);
    }
  });
  EXPECT_GT(placed, 500) << "the draws are of use only when both happen";
  EXPECT_GT(failed, 500);
}

}  // namespace
}  // namespace mortise::sim
