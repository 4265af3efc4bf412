// Runs the built program as its users do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/tree.h"
#include "tests/unit/sim/scratch_dir.h"

namespace mortise::sim {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kNodes =
    "sn,cpu_milli,memory_mib,gpu,model\n"
    "n0,16000,65536,4,T4\n"
    "n1,16000,65536,2,P100\n";
constexpr const char* kPods =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    "a,1000,1024,1,1000,,LS,Running,0,100,1\n"
    "b,1000,1024,1,500,,LS,Running,5,200,6\n"
    "c,2000,2048,2,1000,,LS,Running,7,300,8\n"
    "d,500,512,0,0,,BE,Running,9,50,9\n"
    "e,4000,4096,1,1000,P100,LS,Running,11,90,12\n";

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

struct Ran {
  int code = -1;
  std::string out;
  std::string err;
};

class CommandLine : public testing::Test {
 protected:
  CommandLine() {
    write("nodes.csv", kNodes);
    write("pods.csv", kPods);
    write("empty.csv", "");
    fs::create_directory(dir_.path() / "folder");
  }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(dir_.path() / name, std::ios::binary) << text;
  }

  std::string content(const std::string& name) const { return read(dir_.path() / name); }

  Ran run(const std::string& arguments, const std::string& to = "stdout.txt") const {
    const std::string command = "cd '" + dir_.path().string() + "' && '" + mortise::test::binary_dir() + "/mortise' " +
                                arguments + " >" + to + " 2>stderr.txt";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, to == "stdout.txt" ? content(to) : "", content("stderr.txt")};
  }

  /// Bad usage or input: exit code 2, nothing on stdout, one line on stderr.
  void expect_refused(const std::string& arguments, const std::string& because) const {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.code, 2) << arguments;
    EXPECT_EQ(ran.out, "") << arguments;
    EXPECT_THAT(ran.err, AllOf(StartsWith("mortise: "), HasSubstr(because))) << arguments;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << arguments << "\n" << ran.err;
  }

  ScratchDir dir_;
};

constexpr const char* kReplay = "replay --cluster nodes.csv --trace pods.csv --policy fgd ";
constexpr const char* kCompare = "compare --cluster nodes.csv --trace pods.csv ";

TEST_F(CommandLine, HelpIsOnStdoutForEveryVerb) {
  const Ran ran = run("--help");
  EXPECT_EQ(ran.code, 0);
  for (const char* verb : {"replay", "replay-log", "compare", "explain", "admit", "topo", "policies", "trace"})
    EXPECT_THAT(ran.out, HasSubstr(verb));
  for (const char* verb : {"replay", "replay-log", "compare", "explain", "admit", "topo", "policies", "trace",
                           "trace stat", "trace synth"}) {
    const Ran help = run(std::string(verb) + " --help");
    EXPECT_EQ(help.code, 0) << verb;
    EXPECT_THAT(help.out, HasSubstr("--help")) << verb;
    EXPECT_EQ(help.err, "") << verb;
  }
  EXPECT_EQ(run("--version").code, 0);
}

TEST_F(CommandLine, BadUsageIsOneLineAndCodeTwo) {
  expect_refused("", "no verb given; known: replay, replay-log, compare, explain, admit, topo, policies, trace");
  expect_refused("repaly",
                 "unknown verb 'repaly'; known: replay, replay-log, compare, explain, admit, topo, policies, trace");
  expect_refused("--frobnicate", "--frobnicate");
  expect_refused("replay", "--cluster is required; see 'mortise replay --help'");
  expect_refused(std::string(kReplay) + "--frobnicate", "--frobnicate");
  expect_refused(std::string(kReplay) + "extra", "extra");
  expect_refused("trace", "allowed: stat, synth");
  expect_refused("trace convert", "convert");
  expect_refused("replay --cluster nodes.csv --trace pods.csv --policy", "--policy");
}

TEST_F(CommandLine, BadOptionValuesAreRefused) {
  expect_refused("replay --cluster nodes.csv --trace pods.csv --policy bestfit", "bestfit");
  expect_refused("replay --cluster nodes.csv --trace pods.csv --policy bestfit", "best-fit");
  expect_refused(std::string(kReplay) + "--seed x", "--seed 'x' is not a number");
  expect_refused(std::string(kReplay) + "--seed=-1", "--seed '-1' is not a number");
  expect_refused(std::string(kReplay) + "--arrival sorted", "sorted");
  expect_refused(std::string(kReplay) + "--levels rack", "\"rack\" is not NAME=LABEL");
  expect_refused("explain --cluster nodes.csv --pod pods.csv --policy nope", "nope");
  expect_refused("explain --cluster nodes.csv --pod absent.yaml", "absent.yaml: cannot read: No such file");
  expect_refused(std::string(kReplay) + "--arrival inflate:0", "inflate");
  expect_refused(std::string(kReplay) + "--arrival order:absent.txt", "absent.txt: cannot read: No such file");
  expect_refused(std::string(kCompare) + "--policies fgd,nope --seeds 1", "nope");
  expect_refused(std::string(kCompare) + "--policies fgd,fgd --seeds 1", "'fgd' is named twice");
  expect_refused(std::string(kCompare) + "--policies fgd --seeds 51..42", "runs backwards");
  expect_refused(std::string(kCompare) + "--policies fgd --seeds 1 --threads 0", "--threads '0' is out of range");
  expect_refused(std::string(kCompare) + "--policies fgd --seeds 1 --threads -1",
                 "allowed: a whole number from 1 to 1024");
  expect_refused("trace synth --like openb --cluster nodes.csv --out t.csv --count -1",
                 "allowed: a whole number from 1 to 50000000");
  expect_refused(std::string(kCompare) + "--policies fgd --seeds 1 --shard 3/2", "--shard '3/2'");
  expect_refused("compare --cluster nodes.csv --trace pods.csv pods.csv --policies fgd --seeds 1", "named 'pods'");
}

TEST_F(CommandLine, MissingFilesAndFoldersAreRefused) {
  for (const std::string option : {"--cluster", "--trace", "--node-rank"}) {
    for (const std::string file : {"absent.csv", "folder", "empty.csv"}) {
      std::string arguments = kReplay;
      if (option == "--cluster") arguments.replace(arguments.find("nodes.csv"), 9, file);
      if (option == "--trace") arguments.replace(arguments.find("pods.csv"), 8, file);
      if (option == "--node-rank") arguments += option + " " + file;
      expect_refused(arguments, file);
    }
  }
  expect_refused("trace stat absent.csv", "absent.csv: cannot read: No such file");
  expect_refused("trace stat folder", "folder: is a folder");
  expect_refused("trace stat nodes.csv", "nodes.csv");
}

TEST_F(CommandLine, BadTracesAreRefusedWithFileAndLine) {
  const std::string pods = kPods;
  const std::string header = pods.substr(0, pods.find('\n') + 1);
  write("header_only.csv", header);
  write("truncated.csv", pods.substr(0, pods.rfind(",4096")));
  write("negative.csv", header + "a,1000,1024,-1,1000,,LS,Running,0,100,1\n");
  write("twice.csv", pods + "a,1000,1024,1,1000,,LS,Running,0,100,1\n");
  expect_refused("trace stat header_only.csv", "header_only.csv");
  for (const std::string verb : {"trace stat FILE", "replay --cluster nodes.csv --trace FILE --policy fgd",
                                 "compare --cluster nodes.csv --trace FILE --policies fgd --seeds 1"}) {
    const auto with = [&](const std::string& file) {
      std::string arguments = verb;
      return arguments.replace(arguments.find("FILE"), 4, file);
    };
    expect_refused(with("truncated.csv"), "truncated.csv:6:");
    expect_refused(with("negative.csv"), "negative.csv:2:");
    expect_refused(with("twice.csv"), "twice.csv:7:");
  }
}

TEST_F(CommandLine, BadGangsOfATraceAreRefusedWithFileAndLine) {
  write("size.csv", "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gang_size\na,1,1,1,1000,2\nb,1,1,1,1000,x\n");
  write("level.csv", "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gang_size,topology_required\na,1,1,1,1000,2,rack\n");
  expect_refused("replay --cluster nodes.csv --trace size.csv --policy fgd", "size.csv:3: gang_size is 'x'");
  expect_refused("replay --cluster nodes.csv --trace level.csv --policy fgd",
                 "gang \"a\": the cluster has no topology level \"rack\"; known: node");
}

TEST_F(CommandLine, BadClustersAreRefusedWithFileAndLine) {
  const std::string header = "sn,cpu_milli,memory_mib,gpu,model\n";
  write("negative.csv", header + "n0,16000,65536,-4,T4\n");
  write("twice.csv", std::string(kNodes) + "n1,16000,65536,2,P100\n");
  write("cpu_only.csv", header + "n0,16000,65536,0,\n");
  const auto with = [](const std::string& file) { return "replay --trace pods.csv --policy fgd --cluster " + file; };
  expect_refused(with("negative.csv"), "negative.csv:2:");
  expect_refused(with("twice.csv"), "twice.csv:4:");
  expect_refused(with("cpu_only.csv"), "cpu_only.csv: no GPU on any node");
  // The GPUs of this node are known by a label only: the note about it is part of the one line.
  write("label_only.yaml",
        "apiVersion: v1\nkind: Node\nmetadata:\n  name: n0\n  labels: {nvidia.com/gpu.count: \"8\"}\n"
        "status:\n  allocatable: {cpu: \"8\", memory: 8Gi}\n");
  expect_refused(with("label_only.yaml"), "nvidia.com/gpu.count");
  write("ranks.txt", "n0 1\nn1 x\n");
  expect_refused(std::string(kReplay) + "--node-rank ranks.txt", "ranks.txt:2:");
  write("some_ranks.txt", "n0 1\n");
  expect_refused(std::string(kReplay) + "--node-rank some_ranks.txt", "n1");
}

TEST_F(CommandLine, OutputsThatCannotBeWrittenAreRefused) {
  expect_refused(std::string(kReplay) + "--out nodes.csv/x", "nodes.csv/x");
  expect_refused(std::string(kReplay) + "--out nodes.csv", "nodes.csv");
  expect_refused(std::string(kReplay) + "--placements absent/p.txt", "absent/p.txt");
  expect_refused(std::string(kReplay) + "--placements folder", "folder: is a folder");
  expect_refused(std::string(kReplay) + "--placements pods.csv", "named as input and as output");
  EXPECT_EQ(content("pods.csv"), kPods);
  expect_refused(std::string(kCompare) + "--policies fgd --seeds 1 --out nodes.csv", "nodes.csv");
  expect_refused("trace synth --like openb --count 10 --cluster nodes.csv --out absent/t.csv", "absent/t.csv");
  expect_refused("trace synth --like openb --count 10 --cluster nodes.csv --out nodes.csv", "input and as output");
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  for (const char* command : {"policies", "--help", "replay --help", "--version"}) {
    const Ran ran = run(command, "/dev/full");
    EXPECT_EQ(ran.code, 2) << command;
    EXPECT_THAT(ran.err, HasSubstr("cannot write to standard output"));
  }
}

TEST_F(CommandLine, ReplayJsonIsOneDocumentWithTheAgreedFields) {
  const Ran ran = run(std::string(kReplay) + "--arrival inflate:1.3 --seed 43 --json");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 1);
  const json document = json::parse(ran.out);
  EXPECT_EQ(document.at("trace"), "pods");
  EXPECT_EQ(document.at("policy"), "fgd");
  EXPECT_EQ(document.at("seed"), 43);
  EXPECT_EQ(document.at("arrival"), "inflate:1.3");
  EXPECT_EQ(document.at("nodes"), 2);
  EXPECT_EQ(document.at("gpus"), 6);
  EXPECT_EQ(document.at("pods_pending"), 0);
  EXPECT_EQ(document.at("pods_arrived"), document.at("pods_placed").get<int>() + document.at("pods_failed").get<int>());
  for (const char* field : {"allocation_pct", "frag_pct_of_capacity"}) EXPECT_TRUE(document.at(field).is_number());
  EXPECT_TRUE(document.contains("frag_pct_of_idle"));
  const json& row = document.at("curve").at(0);
  EXPECT_EQ(row.at("arrived_pct"), 0);
  for (const char* field : {"allocation_pct", "frag_pct_of_idle", "frag_pct_of_capacity"}) {
    EXPECT_TRUE(row.contains(field)) << field;
  }
  EXPECT_FALSE(document.contains("timing"));
}

TEST_F(CommandLine, TheArrivalOptionIsShownWithoutTheFolder) {
  write("folder/order.txt", "a\nb\nc\n");
  const Ran ran = run(std::string(kReplay) + "--arrival order:folder/order.txt --json");
  EXPECT_EQ(ran.code, 0) << ran.err;
  const json document = json::parse(ran.out);
  EXPECT_EQ(document.at("arrival"), "order:order.txt");
  EXPECT_EQ(document.at("pods_arrived"), 3);
  EXPECT_THAT(ran.out, Not(HasSubstr("folder")));
}

TEST_F(CommandLine, PlacementsHaveOneLinePerArrival) {
  write("order.txt", "c\na\nd\ne\nb\nc\nc\n");
  write("ranks.txt", "n0 0\nn1 1\n");
  const Ran ran =
      run("replay --cluster nodes.csv --trace pods.csv --policy first-fit --arrival order:order.txt "
          "--node-rank ranks.txt --placements places.txt");
  EXPECT_EQ(ran.code, 0) << ran.err;
  // n0 has 4 T4, n1 has 2 P100: c takes two GPUs of n0, a the third, e needs a P100, b shares n0's fourth; then
  // neither node has two free GPUs: none on n0, one on n1.
  EXPECT_EQ(
      content("places.txt"),
      "c n0 0,1\na n0 2\nd n0 -\ne n1 0\nb n0 3\nc-clone-1 FAIL InsufficientGpu -\nc-clone-2 FAIL InsufficientGpu "
      "-\n");
}

TEST_F(CommandLine, ASnapshotsNotesAreOnStderrBesideTheAnswer) {
  write("snapshot.yaml",
        "apiVersion: v1\nkind: List\nitems:\n"
        "- {apiVersion: v1, kind: Node, metadata: {name: n0}, status: {allocatable: {cpu: \"8\", memory: 8Gi, "
        "nvidia.com/gpu: \"2\"}}}\n"
        "- {apiVersion: v1, kind: Pod, metadata: {name: bound, namespace: x}, spec: {nodeName: n0, containers: [{name: "
        "c, "
        "resources: {limits: {nvidia.com/gpu: \"1\"}}}]}}\n"
        "- {apiVersion: v1, kind: Pod, metadata: {name: waiting, namespace: x}, spec: {containers: [{name: c}]}}\n");
  write("order.txt", "a\na\n");
  const Ran ran =
      run("replay --cluster snapshot.yaml --trace pods.csv --policy fgd --arrival order:order.txt --json "
          "--placements places.txt");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.err, StartsWith("note: "));
  // The bound pod holds one of two GPUs from the start and is none of the arrivals.
  EXPECT_EQ(content("places.txt"), "a n0 1\na-clone-1 FAIL InsufficientGpu -\n");
  EXPECT_EQ(json::parse(ran.out).at("pods_arrived"), 2);
  EXPECT_DOUBLE_EQ(json::parse(ran.out).at("allocation_pct").get<double>(), 100);
}

TEST_F(CommandLine, TimingsAppearOnlyWhenAskedFor) {
  const Ran ran = run(std::string(kReplay) + "--json --timings");
  EXPECT_EQ(ran.code, 0);
  const json timing = json::parse(ran.out).at("timing");
  for (const char* phase : {"read_s", "prepare_s", "replay_s"}) EXPECT_GE(timing.at(phase).get<double>(), 0) << phase;
  const Ran text = run(std::string(kReplay) + "--timings");
  EXPECT_THAT(text.err, HasSubstr("replay"));
  EXPECT_EQ(text.out, run(kReplay).out);
}

TEST_F(CommandLine, TheTextOfAReplayShowsItsFigures) {
  const Ran ran = run(kReplay);
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.out, AllOf(HasSubstr("trace pods, policy fgd, seed 42, arrival inflate:1.3, 2 nodes with 6 GPUs"),
                             HasSubstr("pods arrived"), HasSubstr("arrived %")));
}

TEST_F(CommandLine, TwoRunsGiveTheSameBytes) {
  for (const char* policy : {"random", "fgd", "best-fit+fgd"}) {
    const std::string arguments = std::string("replay --cluster nodes.csv --trace pods.csv --json --policy ") + policy;
    EXPECT_EQ(run(arguments + " --placements one.txt").out, run(arguments + " --placements two.txt").out);
    EXPECT_EQ(content("one.txt"), content("two.txt"));
  }
  const std::string compare = std::string(kCompare) + "--policies random,fgd,first-fit --seeds 42..47 --json ";
  EXPECT_EQ(run(compare + "--threads 1 --out one").out, run(compare + "--threads 2 --out two").out);
  for (const auto& entry : fs::directory_iterator(dir_.path() / "one")) {
    const std::string name = entry.path().filename().string();
    EXPECT_EQ(content("one/" + name), content("two/" + name));
  }
}

TEST_F(CommandLine, LineEndsOfWindowsChangeNothing) {
  const auto with_crlf = [](std::string text) {
    for (std::size_t i = 0; (i = text.find('\n', i)) != std::string::npos; i += 2) text.insert(i, "\r");
    return text;
  };
  const std::string arguments = std::string(kReplay) + "--json --node-rank ranks.txt --arrival order:order.txt";
  write("ranks.txt", "n0 1\nn1 0\n");
  write("order.txt", "a\nb\nc\n");
  const Ran plain = run(arguments);
  EXPECT_EQ(plain.code, 0) << plain.err;
  write("nodes.csv", with_crlf(kNodes));
  write("pods.csv", with_crlf(kPods));
  write("ranks.txt", with_crlf("n0 1\nn1 0\n"));
  write("order.txt", with_crlf("a\nb\nc\n"));
  const Ran crlf = run(arguments);
  EXPECT_EQ(crlf.code, 0) << crlf.err;
  EXPECT_EQ(crlf.out, plain.out);
}

TEST_F(CommandLine, CompareJsonHasASummaryAndItsRuns) {
  const Ran ran = run(std::string(kCompare) + "--policies random,fgd --seeds 42,45 --json");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 1);
  const json document = json::parse(ran.out);
  ASSERT_EQ(document.at("summary").size(), 2U);
  const json& summary = document.at("summary").at(0);
  EXPECT_EQ(summary.at("policy"), "random");
  EXPECT_EQ(summary.at("seeds"), 2);
  EXPECT_EQ(summary.at("at").at(0).at("arrived_pct"), 95);
  for (const char* field : {"mean", "min", "max", "seeds"}) {
    EXPECT_TRUE(summary.at("final").at("allocation_pct").contains(field)) << field;
  }
  ASSERT_EQ(document.at("runs").size(), 4U);
  EXPECT_EQ(document.at("runs").at(3).at("seed"), 45);
  EXPECT_EQ(document.at("runs").at(3).at("policy"), "fgd");
  const Ran text = run(std::string(kCompare) + "--policies random,fgd --seeds 42,45");
  EXPECT_THAT(text.out, AllOf(HasSubstr("alloc@130"), HasSubstr("random"), HasSubstr("fgd")));
}

TEST_F(CommandLine, CompareGoesOnFromItsFolder) {
  const std::string arguments = std::string(kCompare) + "--policies random,fgd --seeds 42..43 --json --out runs";
  const Ran first = run(arguments);
  EXPECT_EQ(first.code, 0) << first.err;
  write("runs/pods_fgd_42.json", "{\"trace\":");
  const Ran second = run(arguments);
  EXPECT_EQ(second.code, 0);
  EXPECT_EQ(second.out, first.out);
  EXPECT_EQ(second.err, "note: runs/pods_fgd_42.json: damaged; run again\n");
  const Ran third = run(arguments);
  EXPECT_EQ(third.err, "");
  // Another trace under the same name.
  write("pods.csv", std::string(kPods) + "f,1000,1024,1,1000,,LS,Running,0,100,1\n");
  const Ran other = run(arguments);
  EXPECT_EQ(other.code, 0);
  EXPECT_THAT(other.err, HasSubstr("runs/pods_random_43.json: of other inputs; run again"));
  EXPECT_NE(other.out, first.out);
}

TEST_F(CommandLine, AReplayKeptInAFolderIsUsedByCompare) {
  EXPECT_EQ(run(std::string(kReplay) + "--seed 7 --out runs").code, 0);
  const std::string before = content("runs/pods_fgd_7.json");
  EXPECT_EQ(json::parse(before).at("policy"), "fgd");
  const Ran ran = run(std::string(kCompare) + "--policies fgd --seeds 7 --out runs");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(content("runs/pods_fgd_7.json"), before);
}

TEST_F(CommandLine, PoliciesNamesThePublishedOnes) {
  const Ran ran = run("policies --json");
  EXPECT_EQ(ran.code, 0);
  std::vector<std::string> published;
  for (const json& policy : json::parse(ran.out)) {
    EXPECT_FALSE(policy.at("description").get<std::string>().empty());
    if (!policy.at("own").get<bool>()) published.push_back(policy.at("name").get<std::string>());
  }
  for (const char* name : {"random", "best-fit", "dot-product", "gpu-packing", "gpu-clustering", "fgd"}) {
    EXPECT_THAT(published, testing::Contains(name));
    EXPECT_THAT(run("policies").out, HasSubstr(name));
  }
}

// One node of two GPUs, of which the lowest goes first.
TEST_F(CommandLine, ReplayLogCountsTheDecisionsThatDiffer) {
  const auto decided = [](const std::string& uid, const std::string& device) {
    return R"({"decided":{"node":"n","devices":{"main":[")" + device +
           R"("]},"pod":{"metadata":{"namespace":"default","name":")" + uid + R"(","uid":")" + uid +
           R"("},"spec":{"containers":[{"name":"main","resources":{"limits":{"nvidia.com/gpu":"1"}}}]}}}})" + "\n";
  };
  const std::string node =
      R"({"node":{"metadata":{"name":"n"},"status":{"allocatable":{"cpu":"8","memory":"8Gi","pods":"9","nvidia.com/gpu":"2"},)"
      R"("capacity":{"nvidia.com/gpu":"2"}}}})"
      "\n";
  write("same.jsonl", node + decided("u1", "0") + decided("u2", "1"));
  write("other.jsonl", node + decided("u1", "1"));
  const Ran same = run("replay-log --log same.jsonl --policy best-fit");
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_EQ(same.out, "0 of 2 decisions differ: 0 on another node, 0 with other devices, 0 not placed\n");
  const Ran other = run("replay-log --log other.jsonl --policy best-fit --json");
  EXPECT_EQ(other.code, 1) << other.err;
  EXPECT_EQ(json::parse(other.out), json::parse(R"({"policy":"best-fit","seed":1,"decisions":1,"same":0,
      "other_devices":1,"other_node":0,"not_placed":0,"differences":[{"pod":"default/u1",
      "was":{"node":"n","devices":"1"},"now":{"node":"n","devices":"0"}}]})"));
  expect_refused("replay-log --log empty.csv --policy no-such", "no-such");
  expect_refused("replay-log --log missing.jsonl --policy best-fit", "missing.jsonl");
  expect_refused("replay-log --log nodes.csv --policy best-fit", "nodes.csv:1: not JSON");
}

TEST_F(CommandLine, TraceStatCountsThePods) {
  const Ran ran = run("trace stat pods.csv --json");
  EXPECT_EQ(ran.code, 0);
  const json document = json::parse(ran.out);
  EXPECT_EQ(document.at("trace"), "pods");
  EXPECT_EQ(document.at("pods"), 5);
  EXPECT_EQ(document.at("share_pods"), 1);
  EXPECT_EQ(document.at("model_pods"), 1);
  EXPECT_DOUBLE_EQ(document.at("gpu_demand").get<double>(), 4.5);
  EXPECT_THAT(run("trace stat pods.csv").out, HasSubstr("GPUs asked for"));
}

TEST_F(CommandLine, TraceSynthMakesATraceAndItsCluster) {
  const std::string arguments = "trace synth --like openb --count 200 --nodes 20 --load 0.9 --seed 7 --json ";
  const Ran ran = run(arguments + "--cluster-out made-nodes.csv --out made.csv");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(json::parse(ran.out).at("pods"), 200);
  EXPECT_EQ(json::parse(ran.out).at("trace"), "made");
  EXPECT_EQ(json::parse(run("trace stat made.csv --json").out), json::parse(ran.out));
  EXPECT_EQ(run("replay --cluster made-nodes.csv --trace made.csv --policy fgd").code, 0);
  EXPECT_EQ(run(arguments + "--cluster-out again-nodes.csv --out again.csv").code, 0);
  EXPECT_EQ(content("again.csv"), content("made.csv"));
  EXPECT_EQ(content("again-nodes.csv"), content("made-nodes.csv"));
  EXPECT_EQ(run("trace synth --like openb --count 200 --cluster made-nodes.csv --load 0.9 --seed 7 --out c.csv").code,
            0);
  EXPECT_EQ(content("c.csv"), content("made.csv"));
}

TEST_F(CommandLine, TraceSynthRefusesWhatItCannotDo) {
  const std::string synth = "trace synth --out made.csv ";
  expect_refused(synth + "--like nothing --count 10 --cluster nodes.csv", "nothing");
  expect_refused(synth + "--like openb --count 0 --cluster nodes.csv", "--count '0' is out of range");
  expect_refused(synth + "--like openb --count 10 --cluster nodes.csv --load 0", "--load '0' is out of range");
  expect_refused(synth + "--like openb --count 10", "allowed: --cluster, or --nodes N with --cluster-out FILE");
  expect_refused(synth + "--like openb --count 10 --nodes 5", "--cluster-out FILE");
  expect_refused(synth + "--like openb --count 10 --nodes 5 --cluster-out n.csv --cluster nodes.csv",
                 "allowed: --cluster, or --nodes N");
  expect_refused(synth + "--like openb --count 10 --nodes 0 --cluster-out n.csv", "--nodes '0' is out of range");
  expect_refused(synth + "--like openb --count 10 --nodes 5 --cluster-out made.csv", "two files");
  EXPECT_FALSE(fs::exists(dir_.path() / "made.csv"));
}

}  // namespace
}  // namespace mortise::sim
