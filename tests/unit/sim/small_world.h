#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/arrivals.h"
#include "sim/inputs.h"
#include "sim/workload.h"

namespace mortise::sim {

inline placement::NodeSpec make_node(std::string name, std::int32_t gpus, MilliCpu cpu = 8000) {
  return {std::move(name), cpu, 64 * 1024 * kMiB, 110, gpus, gpus > 0 ? "T4" : "", true};
}

inline traces::PodRecord make_pod(std::string name, std::int32_t gpus, MilliGpu milli, MilliCpu cpu = 1000) {
  traces::PodRecord pod;
  pod.name = std::move(name);
  pod.cpu = cpu;
  pod.memory = 1024 * kMiB;
  pod.gpus = gpus;
  pod.gpu_milli = milli;
  return pod;
}

inline Workload make_workload(std::vector<traces::PodRecord> pods, std::string name = "small") {
  return Workload(traces::Trace{std::move(name), std::move(pods)});
}

/// Arrivals in a given order, one name a line.
inline ArrivalPlan arrive_in_order(std::string lines) {
  return {traces::OrderFile{"order.txt"}, "order:order.txt", std::move(lines)};
}

inline ArrivalPlan arrive_inflated(double ratio) {
  return {traces::Inflate{ratio}, "inflate", ""};
}

/// Six nodes with 16 GPUs, not all alike.
inline ClusterInput make_small_cluster() {
  ClusterInput cluster;
  cluster.digest = "small cluster";
  cluster.file.nodes = {make_node("a", 4), make_node("b", 4), make_node("c", 2),
                        make_node("d", 2), make_node("e", 2), make_node("f", 2, 3000)};
  return cluster;
}

/// Pods of many kinds: shares, whole GPUs, several GPUs, none.
inline TraceInput make_small_trace(std::string name = "small") {
  std::vector<traces::PodRecord> pods;
  for (int i = 0; i < 20; ++i) {
    const std::string pod = "p" + std::to_string(i);
    switch (i % 5) {
      case 0:
        pods.push_back(make_pod(pod, 1, 100 + 100 * (i % 8), 500));
        break;
      case 1:
        pods.push_back(make_pod(pod, 1, 1000));
        break;
      case 2:
        pods.push_back(make_pod(pod, 2, 1000, 2000));
        break;
      case 3:
        pods.push_back(make_pod(pod, 1, 650, 1500));
        break;
      default:
        pods.push_back(make_pod(pod, 0, 0, 700));
    }
  }
  return {make_workload(std::move(pods), std::move(name)), "small trace"};
}

}  // namespace mortise::sim
