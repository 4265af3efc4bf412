// Published manifests, where ../shared is there, and our own examples: each as the pods that its controllers make of
// it. Expectations were read off the manifests by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/shared_data.h"
#include "tests/support/tree.h"
#include "tests/unit/kube/gang_text.h"
#include "tests/unit/kube/manifest_pods.h"

namespace mortise::kube {
namespace {

using Lines = std::vector<std::string>;

Lines lines_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  const auto applied = test::apply_manifest(text.str(), path.filename().string());
  if (!applied) return {applied.message()};
  Lines lines = test::recognised(applied->pods, applied->objects);
  for (const std::string& kind : applied->not_handled) lines.push_back("not handled: " + kind);
  return lines;
}

const std::map<std::string, Lines> kPublished = {
    {"gang-dra-podgroup.yaml", {"2 x kai:gang-scheduling-test/gang-test-group 2 of any"}},
    {"gke-a4x-max-jobset.yaml", {"2 x single"}},
    {"grove-mnnvl-mix.yaml", {"12 x single"}},
    {"hami-hygon-uuid.yaml", {"1 x single"}},
    {"hived-tf-request.yaml", {"2 x single"}},  // affinityGroup: null
    {"jobset-workload-dra.yaml",
     {"6 x native-pod-group:default/training-workers waits for its group object PodGroup default/training-workers"}},
    {"kai-gpu-memory.yaml", {"1 x single"}},
    {"kai-gpu-sharing-init.yaml", {"1 x single"}},
    {"kai-gpu-sharing-nondefault.yaml", {"1 x single"}},
    // Three of four parts of eight: 24.
    {"kai-podgroup-0.yaml",
     {"8 x kai:default/inference-service 24 of any [prefill-0 8, prefill-1 8, prefill-2 8, prefill-3 8] any 3 | "
      "prefill-0",
      "8 x kai:default/inference-service 24 of any [prefill-0 8, prefill-1 8, prefill-2 8, prefill-3 8] any 3 | "
      "prefill-1",
      "8 x kai:default/inference-service 24 of any [prefill-0 8, prefill-1 8, prefill-2 8, prefill-3 8] any 3 | "
      "prefill-2",
      "8 x kai:default/inference-service 24 of any [prefill-0 8, prefill-1 8, prefill-2 8, prefill-3 8] any 3 | "
      "prefill-3"}},
    // All leaves of the tree: 1 + 4 + 1 + 4.
    {"kai-podgroup-1.yaml",
     {"1 x kai:default/training-job 10 of any [decode-leaders 1, decode-workers 4, prefill-leaders 1, prefill-workers "
      "4] "
      "| decode-leaders",
      "1 x kai:default/training-job 10 of any [decode-leaders 1, decode-workers 4, prefill-leaders 1, prefill-workers "
      "4] "
      "| prefill-leaders",
      "4 x kai:default/training-job 10 of any [decode-leaders 1, decode-workers 4, prefill-leaders 1, prefill-workers "
      "4] "
      "| decode-workers",
      "4 x kai:default/training-job 10 of any [decode-leaders 1, decode-workers 4, prefill-leaders 1, prefill-workers "
      "4] "
      "| prefill-workers"}},
    {"kep5547-workload-0.yaml",
     {"4 x native-pod-group:training/<workload-name>-<podGroup-template-name>-<hash> 4 of any"}},
    {"kep5832-podgroup-0.yaml", {"2 x native-pod-group:ns-1/pd-1 2 of any"}},
    {"koordinator-gang-2.yaml", {"5 x koordinator:namespaceA/gang-a 5 of 5"}},
    // Two replicas of three.
    {"kueue-lws-tas.yaml",
     {"1 x leader-worker-set:default/nginx-leaderworkerset/0/rev1 3 of 3 [leader 1, worker 2] required "
      "cloud.provider.com/topology-rack per lws-group | leader",
      "1 x leader-worker-set:default/nginx-leaderworkerset/1/rev1 3 of 3 [leader 1, worker 2] required "
      "cloud.provider.com/topology-rack per lws-group | leader",
      "2 x leader-worker-set:default/nginx-leaderworkerset/0/rev1 3 of 3 [leader 1, worker 2] required "
      "cloud.provider.com/topology-rack per lws-group | worker",
      "2 x leader-worker-set:default/nginx-leaderworkerset/1/rev1 3 of 3 [leader 1, worker 2] required "
      "cloud.provider.com/topology-rack per lws-group | worker"}},
    {"kueue-mpijob-gb200.yaml",
     {"1 x kubeflow:MPIJob/default/nccl-test 3 of 3 [launcher 1, worker 2] | launcher",
      "2 x kubeflow:MPIJob/default/nccl-test 3 of 3 [launcher 1, worker 2] | worker"}},
    {"kueue-pod-group.yaml", {"2 x kueue:default/sample-group 2 of 2"}},
    {"lws-vllm.yaml",
     {"1 x leader-worker-set:default/vllm/0/rev1 2 of 2 [leader 1, worker 1] | leader",
      "1 x leader-worker-set:default/vllm/0/rev1 2 of 2 [leader 1, worker 1] | worker",
      "1 x leader-worker-set:default/vllm/1/rev1 2 of 2 [leader 1, worker 1] | leader",
      "1 x leader-worker-set:default/vllm/1/rev1 2 of 2 [leader 1, worker 1] | worker"}},
    {"mlbatch-large-appwrapper.yaml", {"4 x single"}},
    {"mpijob-a100-64-ib.yaml",
     {"1 x kubeflow:MPIJob/default/nccl-test-64-a100-8n 9 of 9 [launcher 1, worker 8] | launcher",
      "8 x kubeflow:MPIJob/default/nccl-test-64-a100-8n 9 of 9 [launcher 1, worker 8] | worker"}},
    {"mpijob-tf-benchmarks.yaml",
     {"1 x kubeflow:MPIJob/default/tensorflow-benchmarks 3 of 3 [launcher 1, worker 2] | launcher",
      "2 x kubeflow:MPIJob/default/tensorflow-benchmarks 3 of 3 [launcher 1, worker 2] | worker"}},
    {"native-workload-dra.yaml", {"6 x native-pod-group:default/training-workload-workers 6 of any"}},
    {"native-workload-preempt-jobset.yaml", {"4 x native-pod-group:default/hp-abc-workers-def 4 of any"}},
    {"nim-service.yaml", {"1 x single"}},
    {"pytorchjob-bionemo.yaml", {"8 x kubeflow:PyTorchJob/default/esm2nv-training 8 of 8 [worker 8] | worker"}},
    // One pod of the Deployment beside it.
    {"pytorchjob-hyperpod-kueue.yaml",
     {"3 x kubeflow:PyTorchJob/hyperpod-ns-team-a/imagenet-gpu-team-a-1 3 of 3 [worker 3] | worker", "1 x single"}},
    {"pytorchjob-kai.yaml",
     {"1 x kubeflow:PyTorchJob/default/pytorch-dist-mnist-nccl 3 of 3 [master 1, worker 2] | master",
      "2 x kubeflow:PyTorchJob/default/pytorch-dist-mnist-nccl 3 of 3 [master 1, worker 2] | worker"}},
    {"pytorchjob-kueue.yaml",
     {"1 x kubeflow:PyTorchJob/default/pytorch-simple 2 of 2 [master 1, worker 1] | master",
      "1 x kubeflow:PyTorchJob/default/pytorch-simple 2 of 2 [master 1, worker 1] | worker"}},
    {"raycluster-kai-gpu-sharing.yaml", {"3 x single"}},
    {"rayjob-pytorch-image.yaml", {"5 x single"}},
    {"runai-fractional-pod.yaml", {"1 x single"}},
    {"scheduler-plugins-podgroup.yaml", {"3 x scheduler-plugins:default/nginx 3 of any"}},
    {"trainjob-flux-lammps-gpus.yaml", {"2 x single"}},
    // A template with placeholders on lines of their own.
    {"trainjob-h100-eks-runtime.yaml.txt",
     {"trainjob-h100-eks-runtime.yaml.txt:183: not valid YAML: illegal map value"}},
    {"trainjob-multi-node.yaml", {"3 x single"}},
    {"vllm-deployment-mig.yaml", {"1 x single"}},
    {"vllm-prodstack-crd.yaml", {"2 x single"}},
    {"volcano-mindspore-gpu.yaml",
     {"1 x volcano:default/mindspore-gpu-uid-mindspore-gpu 3 of any [mpimaster 1, mpiworker 2] | mpimaster",
      "2 x volcano:default/mindspore-gpu-uid-mindspore-gpu 3 of any [mpimaster 1, mpiworker 2] | mpiworker"}},
    {"volcano-tf-benchmark.yaml",
     {"1 x volcano:default/tensorflow-benchmark-uid-tensorflow-benchmark 3 of any [ps 1, worker 2] | ps",
      "2 x volcano:default/tensorflow-benchmark-uid-tensorflow-benchmark 3 of any [ps 1, worker 2] | worker"}},
};

const std::map<std::string, Lines> kExamples = {
    {"leaderworkerset.yaml",
     {"1 x leader-worker-set:default/llm/0/rev1 2 of 2 [leader 1, worker 1] required rack | leader",
      "1 x leader-worker-set:default/llm/0/rev1 2 of 2 [leader 1, worker 1] required rack | worker",
      "1 x leader-worker-set:default/llm/1/rev1 2 of 2 [leader 1, worker 1] required rack | leader",
      "1 x leader-worker-set:default/llm/1/rev1 2 of 2 [leader 1, worker 1] required rack | worker"}},
    {"pytorchjob.yaml",
     {"1 x kubeflow:PyTorchJob/default/pretrain 5 of 5 [master 1, worker 4] preferred rack | master",
      "4 x kubeflow:PyTorchJob/default/pretrain 5 of 5 [master 1, worker 4] preferred rack | worker"}},
    {"volcano-job.yaml",
     {"1 x volcano:default/finetune-uid-finetune 3 of any [driver 1, worker 2] required tier-1 | driver",
      "4 x volcano:default/finetune-uid-finetune 3 of any [driver 1, worker 2] required tier-1 | worker"}},
};

void check_folder(const std::filesystem::path& folder, const std::map<std::string, Lines>& expected) {
  std::size_t seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".jsonl") continue;  // no manifests
    const std::string name = entry.path().filename().string();
    SCOPED_TRACE(name);
    const Lines found = lines_of(entry.path());
    for (const std::string& line : found) std::printf("%s: %s\n", name.c_str(), line.c_str());
    if (!expected.contains(name)) {
      ADD_FAILURE() << "no expectation";
      continue;
    }
    EXPECT_THAT(found, testing::UnorderedElementsAreArray(expected.at(name)));
    ++seen;
  }
  EXPECT_EQ(seen, expected.size());
}

TEST(GangFixtures, EveryPublishedManifest) {
  const auto shared = test::shared_dir();
  if (!shared) GTEST_SKIP() << "no ../shared";
  check_folder(*shared / "fixtures" / "workloads", kPublished);
}

TEST(GangFixtures, EveryExampleOfOurs) {
  check_folder(std::filesystem::path(mortise::test::source_dir()) / "config" / "examples", kExamples);
}

}  // namespace
}  // namespace mortise::kube
