// Walks a pod through its life, start by start, and compares the most it ever holds with the counting rule.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "scheduler/placement/request.h"

namespace mortise::placement {
namespace {

/// The sets of containers (by position) that run at the same time, in the order of a pod's life.
std::vector<std::set<std::size_t>> life_of(const std::vector<ContainerAsk>& asks) {
  std::vector<std::set<std::size_t>> moments;
  std::set<std::size_t> running;
  for (std::size_t i = 0; i < asks.size(); ++i) {
    if (asks[i].kind == ContainerKind::kApp) continue;
    running.insert(i);
    moments.push_back(running);
    if (asks[i].kind == ContainerKind::kInit) running.erase(i);  // it ends before the next one starts
  }
  for (std::size_t i = 0; i < asks.size(); ++i) {
    if (asks[i].kind == ContainerKind::kApp) running.insert(i);
  }
  moments.push_back(running);
  return moments;
}

std::vector<ContainerAsk> arbitrary_pod() {
  std::vector<ContainerAsk> asks;
  const int starters = *rc::gen::inRange(0, 6);
  const int apps = *rc::gen::inRange(0, 5);
  for (int i = 0; i < starters + apps; ++i) {
    ContainerAsk ask;
    ask.name = "c" + std::to_string(i);
    ask.kind = i >= starters ? ContainerKind::kApp : *rc::gen::element(ContainerKind::kInit, ContainerKind::kSidecar);
    ask.cpu = *rc::gen::inRange(0, 5000);
    ask.memory = *rc::gen::inRange(0, 1000);
    ask.gpus = *rc::gen::inRange(0, 4);
    asks.push_back(ask);
  }
  return asks;
}

RC_GTEST_PROP(CountContainersProperty, IsThePeakOfThePodsLife, ()) {
  const std::vector<ContainerAsk> asks = arbitrary_pod();
  PodRequest expected;
  for (const std::set<std::size_t>& running : life_of(asks)) {
    PodRequest now;
    for (const std::size_t i : running) {
      now.cpu += asks[i].cpu;
      now.memory += asks[i].memory;
      now.gpus += asks[i].gpus;
    }
    expected.cpu = std::max(expected.cpu, now.cpu);
    expected.memory = std::max(expected.memory, now.memory);
    expected.gpus = std::max(expected.gpus, now.gpus);
  }

  PodRequest pod;
  RC_ASSERT(count_containers(asks, pod).ok());
  RC_ASSERT(pod.cpu == expected.cpu);
  RC_ASSERT(pod.memory == expected.memory);
  RC_ASSERT(pod.gpus == expected.gpus);
}

RC_GTEST_PROP(SplitDevicesProperty, ContainersThatRunTogetherNeverShareADevice, ()) {
  const std::vector<ContainerAsk> asks = arbitrary_pod();
  PodRequest pod;
  RC_ASSERT(count_containers(asks, pod).ok());
  DeviceSet devices;
  while (devices.size() < pod.gpus) devices.insert(*rc::gen::inRange(0, kMaxDevices));

  std::map<std::string, DeviceSet> by_name;
  DeviceSet all;
  for (const ContainerDevices& part : split_devices(pod, devices)) {
    by_name[part.container] = part.devices;
    part.devices.for_each([&](int device) {
      RC_ASSERT(devices.contains(device));
      all.insert(device);
    });
  }
  for (const ContainerAsk& ask : asks) RC_ASSERT(by_name[ask.name].size() == ask.gpus);
  for (const std::set<std::size_t>& running : life_of(asks)) {
    DeviceSet held;
    int sum = 0;
    for (const std::size_t i : running) {
      by_name[asks[i].name].for_each([&](int device) { held.insert(device); });
      sum += asks[i].gpus;
    }
    RC_ASSERT(held.size() == sum);
  }
  RC_ASSERT(all == devices);
}

}  // namespace
}  // namespace mortise::placement
