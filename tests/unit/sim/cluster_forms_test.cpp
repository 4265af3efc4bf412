// Every form of --cluster, through the program's own entry.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/verbs.h"
#include "tests/unit/sim/program.h"

namespace mortise::sim {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

// As many pods of two GPUs as are wanted arrive; the model is asked for by the second.
constexpr const char* kPods =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    "a,1000,1024,2,1000,,LS,Running,0,100,1\n"
    "b,1000,1024,2,1000,V100M32,LS,Running,5,200,6\n";

class ClusterForms : public Program {
 protected:
  ClusterForms() {
    write("pods.csv", kPods);
    write("order.txt", "a\nb\n");
  }

  static Ran run(const std::vector<std::string>& arguments) { return run_program({}, arguments); }

  /// Both pods arrive, in order.
  Ran replay(const std::string& cluster, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"replay",   "--cluster", cluster,  "--trace",   path("pods.csv"),
                                          "--policy", "fgd",       "--json", "--arrival", "order:" + path("order.txt")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
};

TEST_F(ClusterForms, MachinesOfTheCatalogueByNameAndCount) {
  const Ran ran = replay("dgx-1v:1,t4-2:3");
  ASSERT_EQ(ran.code, kExitDone) << ran.err;
  const json result = json::parse(ran.out);
  EXPECT_EQ(result["nodes"], 4);
  EXPECT_EQ(result["gpus"], 14);
  EXPECT_EQ(result["pods_placed"], 2) << "the model is spelled as in the trace";
  EXPECT_EQ(result["topology"]["pods"], 2) << "the topology of every node is known";
  EXPECT_EQ(ran.err, "");
}

TEST_F(ClusterForms, AFileOfNodePools) {
  write("pools.yaml", "pools:\n- {machine: dgx-1v, count: 2, model: A100, kubelet: {policy: single-numa-node}}\n");
  const Ran ran = replay(path("pools.yaml"));
  ASSERT_EQ(ran.code, kExitDone) << ran.err;
  EXPECT_EQ(json::parse(ran.out)["pods_placed"], 1) << "no V100M32 here";
}

TEST_F(ClusterForms, ACsvHasATopologyOnlyWhereItIsAskedFor) {
  write("nodes.csv", "sn,cpu_milli,memory_mib,gpu,model\nn0,104000,524288,2,T4\nn1,96000,393216,8,V100M16\n");
  const json plain = json::parse(replay(path("nodes.csv")).out);
  EXPECT_FALSE(plain.contains("topology"));
  EXPECT_EQ(json::parse(replay(path("nodes.csv"), {"--topology", "none"}).out), plain);
  const Ran known = replay(path("nodes.csv"), {"--topology", "catalogue"});
  ASSERT_EQ(known.code, kExitDone) << known.err;
  EXPECT_THAT(known.err, HasSubstr("count GPUs only: 1 (first: \"n1\")"));
}

TEST_F(ClusterForms, MistakesAreOneLineAndExitTwo) {
  const auto refused = [&](const std::string& cluster, const std::vector<std::string>& more = {}) {
    const Ran ran = replay(cluster, more);
    EXPECT_EQ(ran.code, kExitBad);
    EXPECT_EQ(ran.out, "");
    return ran.err;
  };
  EXPECT_THAT(refused("dgx-9:2"), StartsWith("mortise: \"dgx-9:2\": unknown machine \"dgx-9\"; known: a10-1"));
  EXPECT_THAT(refused(path("missing.csv")), HasSubstr("No such file or directory; allowed: an openb node CSV"));
  EXPECT_THAT(refused("t4-2:1", {"--catalogue", path("nowhere")}), HasSubstr("nowhere"));
  EXPECT_THAT(refused("t4-2:1", {"--topology", "all"}), HasSubstr("--topology 'all'; allowed: none, catalogue"));
  EXPECT_THAT(refused("t4-2:1", {"--topology", "catalogue"}), HasSubstr("t4-2:1: its nodes tell their topology"));
}

TEST_F(ClusterForms, KeptRunsBelongToTheirClusterAndCatalogue) {
  const auto compare = [&](const std::string& cluster, const std::string& catalogue) {
    return run({"compare", "--cluster", cluster, "--catalogue", catalogue, "--trace", path("pods.csv"), "--policies",
                "fgd", "--seeds", "1", "--arrival", "order:" + path("order.txt"), "--out", path("runs")});
  };
  const auto digest = [&] {
    std::ifstream in(dir_.path() / "runs" / "pods_fgd_1.json");
    return json::parse(in)["inputs_digest"].get<std::string>();
  };
  std::filesystem::create_directory(dir_.path() / "catalogue");
  write("catalogue/m.yaml", "name: m\ndescription: d\ntopology: numa:1 gpu:4 cpu:8 memory:64Gi model:T4\n");
  ASSERT_EQ(compare("m:1", path("catalogue")).code, kExitDone);
  const std::string first = digest();
  ASSERT_EQ(compare("m:1", path("catalogue")).code, kExitDone);
  EXPECT_EQ(digest(), first);
  ASSERT_EQ(compare("m:2", path("catalogue")).code, kExitDone);
  const std::string more_nodes = digest();
  EXPECT_NE(more_nodes, first);
  write("catalogue/m.yaml", "name: m\ndescription: d\ntopology: numa:2 gpu:2 cpu:4 memory:32Gi model:T4\n");
  ASSERT_EQ(compare("m:2", path("catalogue")).code, kExitDone);
  EXPECT_NE(digest(), more_nodes) << "the machine is another one";
}

TEST_F(ClusterForms, AGeneratedTraceMayLoadACatalogueCluster) {
  const Ran ran = run({"trace", "synth", "--like", "openb", "--count", "50", "--cluster", "dgx-1v:2", "--out",
                       path("made.csv"), "--json"});
  EXPECT_EQ(ran.code, kExitDone) << ran.err;
}

}  // namespace
}  // namespace mortise::sim
