// `mortise topo --best`, through the program's own entry.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/unit/sim/topo_program.h"

namespace mortise::sim {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// Two NVLinks join GPUs 0 and 1; GPU 2 is in another socket, of which the matrix does not say which.
constexpr const char* kMatrix =
    "\tGPU0\tGPU1\tGPU2\tmlx5_0\tCPU Affinity\tNUMA Affinity\n"
    "GPU0\t X \tNV2\tSYS\tPIX\t0-7\t0\n"
    "GPU1\tNV2\t X \tSYS\tPHB\t0-7\t0\n"
    "GPU2\tSYS\tSYS\t X \tSYS\t\tN/A\n"
    "mlx5_0\tPIX\tPHB\tSYS\t X \t\t\n";

class TopoBest : public TopoProgram {
 protected:
  TopoBest() { write("matrix.txt", kMatrix); }

  static json best_of(std::vector<std::string> arguments, int code = kExitDone) {
    arguments.emplace_back("--json");
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.code, code) << ran.err;
    return json::parse(ran.out).at("best");
  }
};

// The hybrid cube mesh of a DGX-1 with V100 has 50 GB/s between 8 pairs (0-3 0-4 1-2 1-5 2-3 4-7 5-6 6-7), 25 between 8
// others (0-1 0-2 1-3 2-6 3-7 4-5 4-6 5-7) and 9 GB/s between the rest.
TEST_F(TopoBest, TheCubeMeshHasItsPublishedSets) {
  struct Row {
    const char* objective;
    int count;
    std::vector<int> gpus;
    int mb_per_s, bottleneck, ring, total;
  };
  const std::vector<Row> rows = {
      {"bottleneck", 2, {0, 3}, 50000, 50000, 50000, 50000},
      // 0-1 0-2 1-3 have 25, 0-3 1-2 2-3 have 50; the ring 0-1-2-3 needs 0-1.
      {"bottleneck", 4, {0, 1, 2, 3}, 25000, 25000, 25000, 225000},
      // A ring of NVLinks through five GPUs leaves some pair without: 0-3 0-4 2-3 4-7 50, 0-2 3-7 25, 2-4 2-7 3-4
      // 0-7 9.
      {"ring", 5, {0, 2, 3, 4, 7}, 25000, 9000, 25000, 286000},
      // A quad (225), 0-4 with 50 and three pairs of 9.
      {"total", 5, {0, 1, 2, 3, 4}, 302000, 9000, 9000, 302000},
      // 0-3-2-1-5-6-7-4-0 has two NVLinks on every step: 8 x 50 + 8 x 25 + 12 x 9.
      {"ring", 8, {0, 1, 2, 3, 4, 5, 6, 7}, 50000, 9000, 50000, 708000},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(std::string(row.objective) + " " + std::to_string(row.count));
    const json best =
        best_of({"--machine", "dgx-1v", "--best", std::to_string(row.count), "--objective", row.objective});
    ASSERT_EQ(best.size(), 1U);
    EXPECT_EQ(best[0]["k"], row.count);
    EXPECT_EQ(best[0]["gpus"], json(row.gpus));
    EXPECT_EQ(best[0]["mb_per_s"], row.mb_per_s);
    EXPECT_EQ(best[0]["objective"], row.objective);
    EXPECT_EQ(best[0]["bottleneck_mb_per_s"], row.bottleneck);
    EXPECT_EQ(best[0]["ring_mb_per_s"], row.ring);
    EXPECT_EQ(best[0]["total_mb_per_s"], row.total);
    EXPECT_EQ(best[0]["share_of_all_free"], 1.0);
  }
}

TEST_F(TopoBest, SizesAreAnsweredInTheOrderAsked) {
  std::vector<int> counts;
  for (const json& row : best_of({"--machine", "dgx-1v", "--best", "8,2", "--best", "4"})) counts.push_back(row["k"]);
  EXPECT_EQ(counts, (std::vector<int>{8, 2, 4}));
}

TEST_F(TopoBest, JsonHasTheSetAndWhatAFreeMachineWouldHave) {
  const json best = best_of({"--matrix", path("matrix.txt"), "--gpu", "V100", "--best", "2", "--free", "1,2"});
  EXPECT_EQ(best, json::parse(R"([{"k":2,"gpus":[1,2],"mb_per_s":9000,"objective":"bottleneck",
      "bottleneck_mb_per_s":9000,"ring_mb_per_s":9000,"total_mb_per_s":9000,
      "numa_nodes":null,"nearest_nics":[{"nic":"mlx5_0","class":"PHB"}],
      "all_free":{"gpus":[0,1],"mb_per_s":50000,"bottleneck_mb_per_s":50000,"ring_mb_per_s":50000,"total_mb_per_s":50000},
      "share_of_all_free":0.18}])"));
}

TEST_F(TopoBest, TextHasALinePerSize) {
  const Ran ran = run(
      {"--matrix", path("matrix.txt"), "--gpu", "V100", "--best", "1,2,3", "--free", "0,1", "--objective", "total"});
  EXPECT_EQ(ran.code, kExitNo);
  EXPECT_EQ(ran.err, "");
  // Taking GPU 2 first would leave the pair, but it is not free. GPU 0 is nearer to the NIC.
  EXPECT_EQ(ran.out,
            "Best sets by total of the free GPUs 0,1; MB/s, one direction, nominal\n"
            "k  GPUs  bottleneck   ring  total  NUMA  nearest NICs  |  all free  bottleneck   ring  total  share\n"
            "1  0              -      -      -  0     mlx5_0 PIX    |  2                  -      -      -      -\n"
            "2  0,1        50000  50000  50000  0     mlx5_0 PIX    |  0,1            50000  50000  50000  100 %\n"
            "3  -              -      -      -  -     -             |  0,1,2           9000   9000  68000      -  "
            "none: 2 GPUs are free\n");
}

TEST_F(TopoBest, WithoutModelTheSetsAreRankedButHaveNoBandwidth) {
  const Ran ran = run({"--matrix", path("matrix.txt"), "--best", "2", "--json"});
  EXPECT_EQ(ran.code, kExitDone);
  EXPECT_THAT(ran.err, AllOf(StartsWith("note: GPUs of unknown model have no MB/s; their sets are ranked as if"),
                             HasSubstr("25000 MB/s"), HasSubstr("generation 4")));
  const json best = json::parse(ran.out).at("best").at(0);
  EXPECT_EQ(best["gpus"], json({0, 1}));
  for (const char* key : {"mb_per_s", "bottleneck_mb_per_s", "ring_mb_per_s", "total_mb_per_s", "share_of_all_free"}) {
    EXPECT_TRUE(best[key].is_null()) << key;
  }
  EXPECT_TRUE(best.at("all_free").at("mb_per_s").is_null());
  EXPECT_EQ(run({"--matrix", path("matrix.txt"), "--gpu", "V100", "--best", "2"}).err, "");
}

TEST_F(TopoBest, APairWithoutKnownLinkTakesTheBandwidthFromItsSetsOnly) {
  write("partly.json",
        R"({"gpus":[{"index":0,"model":"V100"},{"index":1,"model":"V100"},{"index":2,"model":"V100"}],
            "links":[{"a":0,"b":1,"class":"NV1"},{"a":0,"b":2,"class":"SYS"}]})");
  const Ran ran = run({"--node", path("partly.json"), "--best", "2,3", "--json"});
  EXPECT_THAT(ran.err, StartsWith("note: 1 of the pairs of GPUs have no known link"));
  const json best = json::parse(ran.out).at("best");
  EXPECT_EQ(best[0]["mb_per_s"], 25000);
  EXPECT_TRUE(best[1]["mb_per_s"].is_null());
}

TEST_F(TopoBest, ANearNicDecidesBetweenAlikeGpus) {
  constexpr const char* kAlike =
      "\tGPU0\tGPU1\tGPU2\tNIC0\n"
      "GPU0\t X \tSYS\tSYS\tSYS\n"
      "GPU1\tSYS\t X \tSYS\tSYS\n"
      "GPU2\tSYS\tSYS\t X \tPIX\n"
      "NIC0\tSYS\tSYS\tPIX\t X \n";
  write("alike.txt", kAlike);
  EXPECT_EQ(best_of({"--matrix", path("alike.txt"), "--gpu", "T4", "--best", "1"})[0]["gpus"], json({2}));
  EXPECT_EQ(best_of({"--synthetic", "numa:3 gpu:1 model:T4", "--best", "1"})[0]["gpus"], json({0}));
}

TEST_F(TopoBest, GpusAreNamedByTheirIndexAndNotByTheirPlace) {
  write("holes.json",
        R"({"gpus":[{"index":1},{"index":4},{"index":6}],
            "links":[{"a":1,"b":4,"class":"SYS"},{"a":1,"b":6,"class":"SYS"},{"a":4,"b":6,"class":"NV4"}]})");
  const std::vector<std::string> arguments = {"--node", path("holes.json"), "--gpu", "A100", "--best", "2"};
  EXPECT_EQ(best_of(arguments)[0]["gpus"], json({4, 6}));
  std::vector<std::string> some = arguments;
  some.insert(some.end(), {"--free", "6,1"});
  EXPECT_EQ(best_of(some)[0]["gpus"], json({1, 6}));
  some.back() = "0,1";
  EXPECT_THAT(run(some).err, HasSubstr("--free \"0\": no such GPU; allowed: 1,4,6"));
}

// A division into parts of four is {0,1,2,3} with six pairs in one NUMA node (6 x 20) and {4,5} with padding, whose
// pair has 12 NVLinks (1200 + 20): the part with padding is the highest.
TEST_F(TopoBest, ThePluginsFailureIsANo) {
  const std::string machine = "numa:2 gpu:4@0,2@1 model:A100 nvlink:4-5*12";
  const Ran ran = run({"--synthetic", machine, "--best", "4", "--objective", "nvidia"});
  EXPECT_EQ(ran.code, kExitNo);
  EXPECT_THAT(ran.out, HasSubstr("none: the device plugin fails"));
  const json best = best_of({"--synthetic", machine, "--best", "4,2", "--objective", "nvidia"}, kExitNo);
  EXPECT_TRUE(best[0]["gpus"].is_null());
  EXPECT_TRUE(best[0]["mb_per_s"].is_null());
  EXPECT_EQ(best[0]["may_fail"], true);
  EXPECT_THAT(best[0]["why"], HasSubstr("padding"));
  // What could be had is what the slowest pair allows: the four in one NUMA node.
  EXPECT_EQ(best[0]["all_free"]["gpus"], json({0, 1, 2, 3}));
  EXPECT_EQ(best[1]["gpus"], json({4, 5}));
  EXPECT_EQ(best[1]["may_fail"], false);
  EXPECT_EQ(best[1]["may_pick"], 1);
  EXPECT_EQ(run({"--synthetic", machine, "--best", "4"}).code, kExitDone);
}

TEST_F(TopoBest, ThePluginSaysHowManySetsItMayPick) {
  // Four alike GPUs: in some order of their names each of the six pairs is the plugin's first.
  const json best = best_of({"--synthetic", "numa:1 gpu:4 model:T4", "--best", "2", "--objective", "nvidia"});
  EXPECT_EQ(best[0]["gpus"], json({0, 1}));
  EXPECT_EQ(best[0]["may_pick"], 6);
  EXPECT_EQ(best[0]["may_fail"], false);
}

TEST_F(TopoBest, TooFewFreeGpusAreANo) {
  for (const char* objective : {"bottleneck", "ring", "total", "nvidia"}) {
    const json best =
        best_of({"--machine", "t4-4", "--best", "4,2,5", "--free", "3,0,1", "--objective", objective}, kExitNo);
    ASSERT_EQ(best.size(), 3U);
    EXPECT_TRUE(best[0]["gpus"].is_null());
    EXPECT_EQ(best[0]["why"], "3 GPUs are free");
    EXPECT_EQ(best[0]["all_free"]["gpus"], json({0, 1, 2, 3}));
    EXPECT_EQ(best[1]["gpus"].size(), 2U);
    EXPECT_EQ(best[1].count("why"), 0U);
    EXPECT_TRUE(best[2]["all_free"].is_null());
  }
  EXPECT_EQ(best_of({"--machine", "t4-4", "--best", "2", "--free", "3"}, kExitNo)[0]["why"], "1 GPU is free");
}

TEST_F(TopoBest, TheAnswerIsNoPartOfTheMachine) {
  write("asked.json", run({"--machine", "dgx-1v", "--best", "2,4", "--json"}).out);
  EXPECT_EQ(run({"--node", path("asked.json"), "--json"}).out, run({"--machine", "dgx-1v", "--json"}).out);
  EXPECT_EQ(json::parse(run({"--machine", "dgx-1v", "--json"}).out).count("best"), 0U);
}

TEST_F(TopoBest, CountedGpusAreNoPlaces) {
  write("report.json", R"({"kind":"NodeResourceTopology","metadata":{"name":"a"},"zones":[
      {"name":"node-0","type":"Node","resources":[{"name":"nvidia.com/gpu","capacity":2}]},
      {"name":"node-1","type":"Node","resources":[{"name":"nvidia.com/gpu","capacity":2}]}]})");
  const Ran ran = run({"--node", path("report.json"), "--best", "2", "--json"});
  EXPECT_EQ(ran.code, kExitDone) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("the indexes of the best sets are no places"));
  EXPECT_TRUE(json::parse(ran.out)["best"][0]["numa_nodes"].is_null());
}

TEST_F(TopoBest, SixteenGpusAreAnsweredAndMoreRefused) {
  EXPECT_EQ(best_of({"--machine", "dgx-2", "--best", "16"})[0]["gpus"].size(), 16U);
  const Ran ran = run({"--synthetic", "gpu:17 nvswitch:1", "--best", "2"});
  EXPECT_EQ(ran.code, kExitBad);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(ran.err, "mortise: --best: the machine has 17 GPUs; allowed: machines of up to 16\n");
  EXPECT_EQ(run({"--synthetic", "gpu:17 nvswitch:1"}).code, kExitDone);
}

TEST_F(TopoBest, MistakesAreOneLineAndExitTwo) {
  struct Mistake {
    std::vector<std::string> arguments;
    std::string because;
  };
  const std::string sizes = "allowed are numbers of GPUs from 1 to 64, such as 2 or 2,4,8";
  const std::string gpus = "no such GPU; allowed: 0,1,2,3";
  const std::vector<Mistake> mistakes = {
      {{"--best", "0"}, "--best \"0\": " + sizes},
      {{"--best", "65"}, "--best \"65\": " + sizes},
      {{"--best=-1"}, "--best \"-1\": " + sizes},
      {{"--best", "two"}, "--best \"two\": " + sizes},
      {{"--best", "2.5"}, "--best \"2.5\": " + sizes},
      {{"--best", ""}, "--best \"\": " + sizes},
      {{"--best", "2,"}, "--best \"\": " + sizes},
      {{"--best", "2, 4"}, "--best \" 4\": " + sizes},
      {{"--best", "99999999999999999999"}, sizes},
      {{"--best", "2,4,2"}, "--best: 2 is asked for twice"},
      {{"--best", "2", "--best", "2"}, "--best: 2 is asked for twice"},
      {{"--best"}, "--best"},
      {{"--best", "2", "4"}, "not expected: 4"},
      {{"--best", "2", "--free", ""}, "--free \"\": " + gpus},
      {{"--best", "2", "--free", "0,,1"}, "--free \"\": " + gpus},
      {{"--best", "2", "--free", "4"}, "--free \"4\": " + gpus},
      {{"--best", "2", "--free=-1"}, "--free \"-1\": " + gpus},
      {{"--best", "2", "--free", "GPU0"}, "--free \"GPU0\": " + gpus},
      {{"--best", "2", "--free", "0,1,0"}, "--free: GPU 0 is named twice"},
      {{"--best", "2", "--free", "0", "--free", "0"}, "--free: GPU 0 is named twice"},
      {{"--best", "2", "--free"}, "--free"},
      {{"--free", "0,1"}, "--free requires --best"},
      {{"--objective", "ring"}, "--objective requires --best"},
      {{"--best", "2", "--objective", "speed"},
       "--objective: unknown objective 'speed'; known: bottleneck, ring, total, nvidia"},
      {{"--best", "2", "--objective", ""}, "unknown objective ''"},
      {{"--best", "2", "--objective", "ring", "--objective", "total"}, "--objective"},
      {{"--best", "2", "--annotate"}, "--best and --annotate exclude each other"},
      {{"--best", "2", "--json", "--annotate"}, "exclude each other"},
  };
  for (const Mistake& mistake : mistakes) {
    std::vector<std::string> arguments = {"--machine", "t4-4"};
    arguments.insert(arguments.end(), mistake.arguments.begin(), mistake.arguments.end());
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.code, kExitBad) << mistake.because;
    EXPECT_EQ(ran.out, "") << mistake.because;
    EXPECT_THAT(ran.err, AllOf(StartsWith("mortise: "), HasSubstr(mistake.because)));
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
}

TEST_F(TopoBest, HelpNamesTheOptionsAndObjectives) {
  const Ran ran = run({"--help"});
  EXPECT_EQ(ran.code, kExitDone);
  EXPECT_THAT(ran.out, AllOf(HasSubstr("--best"), HasSubstr("--free"), HasSubstr("--objective"),
                             HasSubstr("bottleneck, ring, total, nvidia")));
}

}  // namespace
}  // namespace mortise::sim
