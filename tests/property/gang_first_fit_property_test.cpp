// Gangs of many kinds, for which the planner's search has to leave ways out: where putting one member after the other,
// largest first, on the first node that takes it finds a place for everybody, the planner finds one, too. What the
// nodes hold is reckoned here anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "scheduler/base/rng.h"
#include "tests/support/gang_cluster.h"

namespace mortise::property {
namespace {

using namespace placement;

struct Bin {
  std::string rack;
  std::vector<int> devices;  // milli-GPU left
  MilliCpu cpu = 0;
};

/// Shares go to the fullest device that has enough.
bool take(Bin& bin, const PodRequest& pod) {
  if (bin.cpu < pod.cpu) return false;
  std::sort(bin.devices.begin(), bin.devices.end());
  const auto first = std::lower_bound(bin.devices.begin(), bin.devices.end(), static_cast<int>(pod.gpu_milli));
  if (bin.devices.end() - first < pod.gpus) return false;
  for (auto device = first; device < first + pod.gpus; ++device) *device -= static_cast<int>(pod.gpu_milli);
  bin.cpu -= pod.cpu;
  return true;
}

bool first_fit(std::vector<Bin> bins, std::vector<GangRole> roles) {
  std::stable_sort(roles.begin(), roles.end(), [](const GangRole& a, const GangRole& b) {
    return std::pair(a.pod.gpus * a.pod.gpu_milli, a.pod.cpu) > std::pair(b.pod.gpus * b.pod.gpu_milli, b.pod.cpu);
  });
  for (const GangRole& role : roles) {
    for (int i = 0; i < role.count; ++i) {
      if (std::none_of(bins.begin(), bins.end(), [&](Bin& bin) { return take(bin, role.pod); })) return false;
    }
  }
  return true;
}

struct Case {
  explicit Case(std::uint64_t seed) : rng(seed) {
    const int nodes = 2 + below(49);
    const int racks = 1 + below(4);
    for (int n = 0; n < nodes; ++n) make_node(n, "r" + std::to_string(below(racks)));
    if (below(3) > 0) gang.required_level = "rack";
    make_roles();
  }

  int below(int bound) { return static_cast<int>(rng.below(static_cast<std::uint64_t>(bound))); }

  void make_node(int n, const std::string& rack) {
    const NodeSpec spec{"n" + std::to_string(n), 32'000, std::int64_t{1} << 40, 250, 8, "A100"};
    const int free_gpus = below(3) == 0 ? below(9) : 8;
    on.node(spec, rack, free_gpus);
    Bin bin{rack, std::vector<int>(8, 1000), spec.cpu};
    empty.push_back(bin);
    std::fill(bin.devices.begin() + free_gpus, bin.devices.end(), 0);
    now.push_back(bin);
  }

  /// About as much as one of the domains has free.
  void make_roles() {
    const std::string rack = now[static_cast<std::size_t>(below(static_cast<int>(now.size())))].rack;
    int milli = 0;
    for (const Bin& bin : now) {
      if (gang.required_level.empty() || bin.rack == rack) {
        for (const int left : bin.devices) milli += left;
      }
    }
    const int kinds = 1 + below(16);
    const bool alike = below(3) == 0;  // but for a little CPU
    const bool shares = below(3) == 0;
    for (int k = 0; k < kinds; ++k) {
      PodRequest pod = GangCluster::pod(alike ? 1 : 1 + below(4), 1 + k + (alike ? 0 : 500 * below(8)));
      if (shares && below(2) == 0) pod = GangCluster::pod(1, 1 + k, 100 * (1 + below(9)));
      if (below(8) == 0) pod = GangCluster::pod(0, 1'000 * (1 + below(8)) + k);
      gang.roles.push_back(GangCluster::role("k" + std::to_string(k), 0, pod));
    }
    const int goal = milli / 1000 * (700 + below(300));
    int asked = 0;
    for (int members = 0; members < 200 && (asked < goal || members == 0); ++members) {
      GangRole& role = gang.roles[static_cast<std::size_t>(below(kinds))];
      role.min = ++role.count;
      asked += role.pod.gpus * static_cast<int>(role.pod.gpu_milli);
    }
  }

  bool obvious(const std::vector<Bin>& bins) const {
    if (gang.required_level.empty()) return first_fit(bins, gang.roles);
    std::map<std::string, std::vector<Bin>> racks;
    for (const Bin& bin : bins) racks[bin.rack].push_back(bin);
    return std::any_of(racks.begin(), racks.end(),
                       [&](const auto& rack) { return first_fit(rack.second, gang.roles); });
  }

  Rng rng;
  GangCluster on{{{"rack", "rack"}}};
  std::vector<Bin> now;
  std::vector<Bin> empty;
  GangRequest gang;
};

TEST(GangProperty, WhatFirstFitPlacesIsPlaced) {
  int placed = 0;
  int missed = 0;  // by first fit, not by the planner
  int refused = 0;
  constexpr int kCases = 120;
  for (int seed = 1; seed <= kCases; ++seed) {
    SCOPED_TRACE("case " + std::to_string(seed));
    Case one(static_cast<std::uint64_t>(seed));
    const GangDecision decision = one.on.plan(one.gang);  // looks that the plan can be taken
    if (testing::Test::HasFailure()) return;
    const bool fits = std::holds_alternative<GangPlan>(decision);
    const bool obvious = one.obvious(one.now);
    ASSERT_TRUE(fits || !obvious) << std::get<GangRejected>(decision).detail;
    placed += obvious ? 1 : 0;
    missed += fits && !obvious ? 1 : 0;
    if (fits) {
      int members = 0;
      for (const GangRole& role : one.gang.roles) members += role.count;
      ASSERT_EQ(static_cast<int>(std::get<GangPlan>(decision).members.size()), members);
      continue;
    }
    ++refused;
    if (one.obvious(one.empty)) {
      ASSERT_EQ(std::get<GangRejected>(decision).reason, GangReason::kNoRoom);
    }
  }
  std::printf("%d cases: first fit places %d, the planner %d more; refused %d\n", kCases, placed, missed, refused);
  EXPECT_GT(placed, kCases / 4);
  EXPECT_GT(refused, kCases / 20);
}

}  // namespace
}  // namespace mortise::property
