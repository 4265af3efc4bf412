#include "scheduler/topology/sources/topo_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "scheduler/topology/graph.h"

namespace mortise::topology {
namespace {

// Three GPUs and two NICs; the sample is ours.
constexpr std::string_view kPlain =
    "\tGPU0\tGPU1\tGPU2\tmlx5_0\tmlx5_1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    "GPU0\t X \tNV4\tSYS\tPIX\tSYS\t0-7,16-23\t0\t\tN/A\n"
    "GPU1\tNV4\t X \tSYS\tPHB\tSYS\t0-7,16-23\t0\t\tN/A\n"
    "GPU2\tSYS\tSYS\t X \tSYS\tPXB\t8-15,24-31\t1\t\tN/A\n"
    "mlx5_0\tPIX\tPHB\tSYS\t X \tSYS\t\t\t\t\n"
    "mlx5_1\tSYS\tSYS\tPXB\tSYS\t X \t\t\t\t\n"
    "\nLegend:\n\n  X    = Self\n";

Reading must_read(std::string_view text) {
  auto reading = read_topo_matrix(text, "m.txt");
  EXPECT_TRUE(reading.ok()) << reading.message();
  return reading ? *std::move(reading) : Reading{};
}

std::string refusal(std::string_view text) {
  const auto reading = read_topo_matrix(text, "m.txt");
  EXPECT_FALSE(reading.ok());
  return reading ? std::string() : reading.message();
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string links(const Machine& machine) {
  std::string text;
  for (const GpuLink& link : machine.gpu_links) {
    text += link.nvlinks > 0 ? "NV" + std::to_string(link.nvlinks) : std::string(to_text(link.pcie));
    text += ' ';
  }
  for (const NicLink& link : machine.nic_links) text += std::string(to_text(link.pcie)) + ' ';
  return text;
}

const std::string kPlainLinks = "NV4 SYS SYS PIX SYS PHB SYS SYS PXB ";

TEST(TopoMatrix, GivesGpusNicsLinksAndAffinities) {
  const Machine machine = must_read(kPlain).machine;
  ASSERT_EQ(machine.gpus.size(), 3U);
  EXPECT_EQ(links(machine), kPlainLinks);
  EXPECT_EQ(to_text(*machine.gpus[2].cpus), "8-15,24-31");
  EXPECT_EQ(machine.gpus[2].numa, std::vector<int>{1});
  ASSERT_EQ(machine.nics.size(), 2U);
  EXPECT_EQ(machine.nics[1].device, "mlx5_1");
  EXPECT_EQ(machine.numa.size(), 2U);
}

TEST(TopoMatrix, ColoursAndUnderlinesAreSkipped) {
  std::string text = replaced(std::string(kPlain), "GPU0\tGPU1", "\x1b[4mGPU0\tGPU1");
  text = replaced(text, "GPU NUMA ID\n", "GPU NUMA ID\x1b[0m\r\n");
  text = replaced(text, "\tPXB", "\t\x1b[1;32mPXB\x1b[0m");
  EXPECT_EQ(must_read(text).machine, must_read(kPlain).machine);
}

TEST(TopoMatrix, HeaderNamesAndCellsMayRunTogether) {
  std::string text =
      replaced(std::string(kPlain), "GPU0\tGPU1\tGPU2\tmlx5_0\tmlx5_1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID",
               "GPU0GPU1GPU2mlx5_0mlx5_1CPUAffinityNUMAAffinityGPUNUMAID");
  text = replaced(text, " X \tNV4\tSYS\tPIX\tSYS\t0-7", "XNV4SYSPIXSYS\t0-7");
  text = replaced(text, "GPU2\tSYS\tSYS\t X \tSYS\tPXB", "GPU2SYSSYS X SYSPXB");
  EXPECT_EQ(must_read(text).machine, must_read(kPlain).machine);
}

TEST(TopoMatrix, BlanksInsteadOfTabsAreReadWhenEveryValueIsThere) {
  constexpr std::string_view text =
      "        GPU0    GPU1    CPU Affinity    NUMA Affinity   GPU NUMA ID\n"
      "GPU0     X      PHB     0-3,8           0               N/A\n"
      "GPU1    PHB      X      4-7             1               2\n";
  const Machine machine = must_read(text).machine;
  EXPECT_EQ(machine.gpus[1].numa, std::vector<int>{1});
  ASSERT_EQ(machine.numa.size(), 3U);
  EXPECT_EQ(machine.numa[2].memory_of_gpu, 1);
  EXPECT_EQ(machine.numa[2].cpus, CpuRanges{});
}

TEST(TopoMatrix, BlanksThatLeaveAValueOpenAreRefusedWithTheLine) {
  constexpr std::string_view text =
      "        GPU0    GPU1    CPU Affinity    NUMA Affinity   GPU NUMA ID\n"
      "GPU0     X      PHB     0-3             0               N/A\n"
      "GPU1    PHB      X                      1               N/A\n";
  EXPECT_THAT(refusal(text), testing::StartsWith("m.txt:3: row GPU1 has 2 of 3 affinity values"));
}

TEST(TopoMatrix, EmptyAffinitiesAreNotAllCpus) {
  const std::string text = replaced(std::string(kPlain), "SYS\tPXB\t8-15,24-31\t1", "SYS\tPXB\t\t");
  const Machine machine = must_read(text).machine;
  EXPECT_FALSE(machine.gpus[2].cpus.has_value());
  EXPECT_TRUE(machine.gpus[2].numa.empty());
}

TEST(TopoMatrix, NumaAffinityMayNameSeveralNodes) {
  EXPECT_EQ(must_read(replaced(std::string(kPlain), "24-31\t1", "24-31\t0-1")).machine.gpus[2].numa,
            (std::vector<int>{0, 1}));
  EXPECT_EQ(must_read(replaced(std::string(kPlain), "24-31\t1", "24-31\t1,3")).machine.gpus[2].numa,
            (std::vector<int>{1, 3}));
  EXPECT_TRUE(must_read(replaced(std::string(kPlain), "24-31\t1", "24-31\tN/A")).machine.gpus[2].numa.empty());
}

TEST(TopoMatrix, AsymmetryIsNotedAndTheWorseLinkTaken) {
  const Reading links_differ = must_read(replaced(std::string(kPlain), "GPU1\tNV4", "GPU1\tNV2"));
  EXPECT_EQ(links_differ.machine.gpu_links[0].nvlinks, 2);
  ASSERT_EQ(links_differ.notes.size(), 1U);
  EXPECT_THAT(links_differ.notes[0], testing::HasSubstr("GPU0 to GPU1 is NV4, GPU1 to GPU0 is NV2"));

  const Reading kinds_differ = must_read(replaced(std::string(kPlain), "GPU1\tNV4", "GPU1\tPIX"));
  EXPECT_EQ(kinds_differ.machine.gpu_links[0].nvlinks, 0);
  EXPECT_EQ(kinds_differ.machine.gpu_links[0].pcie, LinkClass::kPix);

  const Reading nic_differs = must_read(replaced(std::string(kPlain), "mlx5_0\tPIX", "mlx5_0\tNODE"));
  EXPECT_EQ(nic_differs.machine.nic_links[0].pcie, LinkClass::kNode);
}

TEST(TopoMatrix, NicLegendNamesTheDevices) {
  constexpr std::string_view text =
      "\tGPU0\tNIC0\tNIC1\tCPU Affinity\n"
      "GPU0\t X \tPIX\tSYS\t0-3\n"
      "NIC0\tPIX\t X \tSYS\t\n"
      "NIC1\tSYS\tSYS\t X \t\n"
      "\nLegend:\n\n  X    = Self\n\nNIC Legend:\n\n  NIC0: mlx5_2\n  NIC1: mlx5_bond_0\n";
  const Machine machine = must_read(text).machine;
  EXPECT_EQ(machine.nics[0].name, "NIC0");
  EXPECT_EQ(machine.nics[0].device, "mlx5_2");
  EXPECT_EQ(machine.nics[1].device, "mlx5_bond_0");
  EXPECT_THAT(refusal(replaced(std::string(text), "NIC1: mlx", "NIC7: mlx")),
              testing::StartsWith("m.txt:13: the NIC legend has \"NIC7\""));
}

TEST(TopoMatrix, TextBeforeTheTableIsSkipped) {
  EXPECT_EQ(must_read("$ nvidia-smi topo -m\n" + std::string(kPlain)).machine, must_read(kPlain).machine);
}

TEST(TopoMatrix, MissingNicRowsAreNotedNotMissed) {
  const std::string text(kPlain.substr(0, kPlain.find("mlx5_0\tPIX")));
  const Reading reading = must_read(text);
  EXPECT_EQ(links(reading.machine), kPlainLinks);
  EXPECT_EQ(reading.notes.size(), 2U);
}

TEST(TopoMatrix, CutTablesAreRefusedWithTheLine) {
  const std::string text(kPlain);
  EXPECT_EQ(refusal(text.substr(0, text.find("\tSYS\t X \tSYS\tPXB"))), "m.txt:4: row GPU2 ends after 1 of 5 cells");
  EXPECT_EQ(refusal(text.substr(0, text.find("GPU2\tSYS"))),
            "m.txt:4: the table has no row GPU2, which its header names");
  EXPECT_THAT(refusal(replaced(text, "GPU1\tNV4\t X ", "GPU1\tNV4\tX? ")),
              testing::StartsWith("m.txt:3: row GPU1 has \"?\""));
  EXPECT_THAT(refusal("no table\n"), testing::StartsWith("m.txt:1: no line of column names"));
  EXPECT_THAT(refusal(""), testing::StartsWith("m.txt:1: no line of column names"));
}

TEST(TopoMatrix, ContradictionsAreRefusedWithTheLine) {
  const std::string text(kPlain);
  EXPECT_THAT(refusal(replaced(text, "GPU1\tNV4\t X ", "GPU1\t X \tNV4")),
              testing::StartsWith("m.txt:3: row GPU1 has X under GPU0"));
  EXPECT_THAT(refusal(replaced(text, "PHB\tSYS\t0-7", "NV2\tSYS\t0-7")),
              testing::StartsWith("m.txt:3: row GPU1 has NV2 under mlx5_0"));
  EXPECT_THAT(refusal(replaced(text, "GPU2\tSYS", "GPU1\tSYS")), testing::StartsWith("m.txt:4: a second row GPU1"));
  EXPECT_THAT(refusal(replaced(text, "8-15,24-31", "15-8")), testing::StartsWith("m.txt:4: bad CPU list \"15-8\""));
  EXPECT_THAT(refusal(replaced(text, "24-31\t1", "24-31\t64")),
              testing::StartsWith("m.txt:4: bad NUMA affinity \"64\""));
  EXPECT_THAT(refusal(replaced(text, "GPU0\tGPU1", "GPU0\tGPU0")),
              testing::StartsWith("m.txt:1: column \"GPU0\" twice"));
  const std::string table = text.substr(0, text.find("\nLegend"));
  EXPECT_EQ(refusal(table + table), "m.txt:7: a second table; allowed: one machine");
}

}  // namespace
}  // namespace mortise::topology
