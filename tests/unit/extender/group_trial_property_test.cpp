// Trials, binds, other pods and time in any order: no device is held twice, and a trial leaves nothing behind.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/support/for_all.h"
#include "tests/unit/extender/test_cluster.h"

namespace mortise::extender {
namespace {

const std::vector<std::string_view> kNodes = {"big-a", "big-b", "small"};
constexpr int kMembers = 5;

int capacity(const std::string& node) {
  return node == "small" ? 2 : 8;
}

class Interleaving {
 public:
  void step() {
    switch (*rc::gen::inRange(0, 7)) {
      case 0:
      case 1:
        return trial();
      case 2:
        return ask_single();
      case 3:
        return start_bind();
      case 4:
        return finish_bind();
      case 5:
        return end_one();
      default:
        cluster_.clock().advance(*rc::gen::inRange<std::int64_t>(0, 45) * kSecond);
        return;
    }
  }

  /// What is held is what the bookings hold, and no GPU more than once.
  void check() {
    RC_ASSERT(cluster_.cluster().check().ok());
    std::int64_t held = 0;
    for (const std::string_view node : kNodes) {
      std::map<int, int> pods_on;
      cluster_.bookings().for_each_on(node, [&](const std::string&, const Booking& booking) {
        RC_ASSERT(booking.allocation.has_value());
        const placement::DeviceSet& devices = cluster_.cluster().allocation(*booking.allocation)->devices;
        for (int device = 0; device < 8; ++device) {
          if (devices.contains(device)) ++pods_on[device];
        }
        held += devices.size();
      });
      for (const auto& [device, pods] : pods_on) RC_ASSERT(pods == 1);
    }
    RC_ASSERT(cluster_.cluster().totals().gpu_used == held * kWholeGpu);
    RC_ASSERT(cluster_.cluster().totals().pods == static_cast<std::int64_t>(cluster_.bookings().size()));
  }

  void end_all() {
    for (const auto& [uid, binding] : on_its_way_) {
      cluster_.handlers().finish_bind(binding.start, binding.node, BindResult::State::kNotBound);
    }
    for (const std::string& uid : cluster_.bookings().bound_uids()) cluster_.bookings().ended(uid);
    cluster_.clock().advance(120 * kSecond);
    (void)cluster_.handlers().filter(ask("last", 1, kNodes));
    cluster_.bookings().drop_reservation("last");
    RC_ASSERT(cluster_.bookings().size() == 0U);
    RC_ASSERT(cluster_.cluster().totals().gpu_used == 0);
  }

 private:
  struct Told {
    std::string node;
    int gpus = 0;
    Nanoseconds at = 0;
  };
  struct Trial {
    std::set<std::string> asked;
    std::map<std::string, Told> told;
    Nanoseconds last = 0;
  };
  struct OnItsWay {
    Handlers::BindStart start;
    std::string node;
  };

  /// Never one alone.
  std::vector<std::string_view> some_nodes() {
    auto nodes = *rc::gen::container<std::vector<std::string_view>>(rc::gen::elementOf(kNodes));
    if (nodes.empty()) nodes = kNodes;
    nodes.push_back("plain");
    return nodes;
  }
  std::vector<std::string> passed(const PodQuestion& question) {
    return with_verdict(cluster_.handlers().filter(question).result, Verdict::kPassed);
  }
  static int size_of(const std::string& uid) { return 1 + (uid.back() - '0') % 4; }

  std::int64_t booked_on(const std::string& node) {
    std::int64_t gpus = 0;
    cluster_.bookings().for_each_on(node,
                                    [&](const std::string&, const Booking& booking) { gpus += booking.request.gpus; });
    return gpus;
  }
  std::int64_t told_on(const Trial& trial, const std::string& node) {
    std::int64_t gpus = 0;
    for (const auto& [uid, place] : trial.told) {
      const bool counts =
          cluster_.bookings().find(uid) == nullptr && cluster_.clock().now() - place.at < GroupTrials::kEndsAfter;
      if (counts && place.node == node) gpus += place.gpus;
    }
    return gpus;
  }

  /// Some members in order, over the same candidates, the last ones left out.
  void trial() {
    const std::string group = *rc::gen::element<std::string>("g", "h");
    const auto nodes = some_nodes();
    const int asked = *rc::gen::inRange(1, kMembers + 1);
    for (int i = 0; i < asked; ++i) {
      ask_member(trials_[group], group, group + std::to_string(i), nodes);
      if (*rc::gen::inRange(0, 8) == 0) cluster_.clock().advance(20 * kSecond);
    }
  }

  void ask_member(Trial& trial, const std::string& group, const std::string& uid,
                  const std::vector<std::string_view>& nodes) {
    const Booking* booking = cluster_.bookings().find(uid);
    if (booking != nullptr && booking->stage != Booking::Stage::kReserved) return;  // kube-scheduler has placed it
    const Nanoseconds now = cluster_.clock().now();
    if (trial.asked.contains(uid) || now - trial.last >= GroupTrials::kEndsAfter) trial = {};
    trial.asked.insert(uid);
    trial.last = now;
    PodQuestion question = ask(uid, size_of(uid), nodes);
    question.group = "default/" + group;
    std::vector<std::string> found;
    if (*rc::gen::inRange(0, 4) == 0) {  // a nominated node first
      PodQuestion nominated = ask(uid, size_of(uid), {nodes.front()});
      nominated.group = question.group;
      found = passed(nominated);
    }
    if (found.empty()) found = passed(question);
    RC_ASSERT(found.size() <= 1U);
    if (found.empty()) return;
    const std::string& node = found.front();
    booking = cluster_.bookings().find(uid);
    const std::int64_t own = booking != nullptr && booking->node == node ? booking->request.gpus : 0;
    const std::int64_t before = booked_on(node) - own + told_on(trial, node);
    // Where others took what was told, bind will say so; what is left is never given twice.
    if (before <= capacity(node)) RC_ASSERT(before + size_of(uid) <= capacity(node));
    trial.told[uid] = {node, size_of(uid), now};
    node_of_[uid] = node;
  }

  void ask_single() {
    const std::string uid = "s" + std::to_string(*rc::gen::inRange(0, 6));
    const auto found = passed(ask(uid, size_of(uid), some_nodes()));
    if (found.size() == 1) node_of_[uid] = found.front();
  }

  void start_bind() {
    if (node_of_.empty()) return;
    const auto& [uid, told] =
        *std::next(node_of_.begin(), *rc::gen::inRange<int>(0, static_cast<int>(node_of_.size())));
    const bool elsewhere = *rc::gen::inRange(0, 4) == 0;  // the placement that won was not the last one tried
    const std::string node = elsewhere ? std::string(*rc::gen::elementOf(kNodes)) : told;
    const Handlers::BindStart start = cluster_.handlers().start_bind({"pod-" + uid, "default", uid, node});
    if (!start.error.empty() || start.done) return;
    RC_ASSERT(start.devices.size() == size_of(uid));
    on_its_way_[uid] = {start, node};
    for (auto& [group, trial] : trials_) trial.told.erase(uid);
  }

  void finish_bind() {
    if (on_its_way_.empty()) return;
    const auto first = on_its_way_.begin();
    const auto state = *rc::gen::element(BindResult::State::kBound, BindResult::State::kBound,
                                         BindResult::State::kNotBound, BindResult::State::kUnknown);
    cluster_.handlers().finish_bind(first->second.start, first->second.node, state);
    on_its_way_.erase(first);
  }

  void end_one() {
    const auto bound = cluster_.bookings().bound_uids();
    if (!bound.empty()) cluster_.bookings().ended(*rc::gen::elementOf(bound));
  }

  TestCluster cluster_{"first-fit", 120 * kSecond};
  std::map<std::string, Trial> trials_;
  std::map<std::string, std::string> node_of_;
  std::map<std::string, OnItsWay> on_its_way_;
};

TEST(GroupTrialProperty, NoDeviceIsHeldTwiceAndATrialLeavesNothingBehind) {
  test::for_all(400, [] {
    Interleaving run;
    const int steps = *rc::gen::inRange(1, 60);
    for (int i = 0; i < steps; ++i) {
      run.step();
      run.check();
    }
    run.end_all();
  });
}

}  // namespace
}  // namespace mortise::extender
