// The pods that controllers make, as the gangs that come of them. Expectations were read off the manifests by hand.
#include "sim/workload_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "sim/asks.h"
#include "sim/manifest.h"
#include "tests/support/shared_data.h"
#include "tests/support/tree.h"

namespace mortise::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// One line per ask: "GANG members/minimum LEVEL: role members/minimum, ..." or "pod NAME".
std::vector<std::string> asks(const std::filesystem::path& file) {
  const auto manifest = read_manifest(file.string());
  if (!manifest) return {manifest.message()};
  const auto found = asks_of(*manifest);
  if (!found) return {found.message()};
  std::vector<std::string> lines;
  for (const Ask& ask : *found) {
    if (!ask.is_gang()) {
      lines.push_back("pod " + ask.name);
      continue;
    }
    std::string line = ask.name + " " + std::to_string(ask.members) + "/" + std::to_string(ask.minimum);
    if (!ask.required_level.empty()) line += " required " + ask.required_level;
    if (!ask.preferred_level.empty()) line += " preferred " + ask.preferred_level;
    for (const AskingRole& role : ask.roles) {
      line += ", " + std::to_string(role.members.size()) + "/" + std::to_string(role.minimum) + " " + role.name +
              " of " + std::to_string(role.members.front().request.gpus);
    }
    lines.push_back(ask.obstacle.empty() ? line : line + ": " + ask.obstacle);
  }
  return lines;
}

std::vector<std::string> example(const std::string& name) {
  return asks(std::filesystem::path(mortise::test::source_dir()) / "config" / "examples" / name);
}

TEST(WorkloadPods, OurExamplesAreTheGangsTheyDescribe) {
  EXPECT_THAT(example("pytorchjob.yaml"),
              ElementsAre("PyTorchJob/default/pretrain 5/5 preferred rack, 1/1 master of 0, "
                          "4/4 worker of 8"));
  EXPECT_THAT(example("leaderworkerset.yaml"),
              ElementsAre("default/llm/0 2/2 required rack, 1/1 leader of 8, 1/1 worker of 8",
                          "default/llm/1 2/2 required rack, 1/1 leader of 8, 1/1 worker of 8"));
  EXPECT_THAT(example("volcano-job.yaml"),
              ElementsAre("default/finetune 5/3 required tier-1, 1/1 driver of 0, 4/2 worker of 4"));
}

/// A JobSet of one job of two pods, which are a gang.
std::string job_set(const std::string& of_set, const std::string& of_job) {
  const auto metadata = [](const std::string& rest, const std::string& level) {
    const std::string key = R"("alpha.jobset.sigs.k8s.io/exclusive-topology":")";
    return "\"metadata\":{" + rest + "\"annotations\":{" + (level.empty() ? "" : key + level + "\"") + "}}";
  };
  return R"({"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet",)" +
         metadata(R"("labels":{},"name":"s",)", of_set) + R"(,"spec":{"replicatedJobs":[{"name":"w","template":{)" +
         metadata(R"("labels":{},)", of_job) +
         R"(,"spec":{"parallelism":2,"template":{"metadata":{"annotations":{"mortise.dev/gang-name":"g"}},)" +
         R"("spec":{"containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"8"}}}]}}}}}]}})";
}

TEST(WorkloadPods, ExclusiveTopologyOfAJobSetOrItsJobTemplateIsThatOfItsPods) {
  const auto level = [](const std::string& text) {
    const auto manifest = parse_manifest(text, "jobset.json");
    return manifest ? asks_of(*manifest)->at(0).required_level : manifest.message();
  };
  EXPECT_EQ(level(job_set("rack", "")), "rack");
  EXPECT_EQ(level(job_set("", "block")), "block");
  EXPECT_EQ(level(job_set("", "")), "");
}

TEST(WorkloadPods, PublishedManifestsAreTheGangsTheyDescribe) {
  const auto shared = test::shared_dir();
  if (!shared) GTEST_SKIP() << "no ../shared";
  const std::filesystem::path folder = *shared / "fixtures" / "workloads";
  EXPECT_THAT(asks(folder / "mpijob-a100-64-ib.yaml"),
              ElementsAre("MPIJob/default/nccl-test-64-a100-8n 9/9, 1/1 launcher of 0, 8/8 worker of 8"));
  EXPECT_THAT(asks(folder / "pytorchjob-kai.yaml"),
              ElementsAre("PyTorchJob/default/pytorch-dist-mnist-nccl 3/3, 1/1 master of 1, 2/2 worker of 1"));
  EXPECT_THAT(asks(folder / "volcano-tf-benchmark.yaml"), ElementsAre(HasSubstr("default/tensorflow-benchmark 3/3")));
  EXPECT_THAT(asks(folder / "lws-vllm.yaml"),
              ElementsAre(HasSubstr("default/vllm/0 2/2"), HasSubstr("default/vllm/1 2/2")));
}

}  // namespace
}  // namespace mortise::sim
