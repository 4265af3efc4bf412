// `mortise admit` as its users run it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/tree.h"
#include "tests/unit/sim/scratch_dir.h"

namespace mortise::sim {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

struct Ran {
  int code = -1;
  std::string out;
  std::string err;
};

class AdmitVerb : public testing::Test {
 protected:
  Ran run(const std::string& cases, const std::string& arguments = "") const {
    std::ofstream(dir_.path() / "cases.jsonl", std::ios::binary) << cases;
    const std::string command = "cd '" + dir_.path().string() + "' && '" + mortise::test::binary_dir() +
                                "/mortise' admit " + arguments + " <cases.jsonl >out.txt 2>err.txt";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, content("out.txt"), content("err.txt")};
  }

  std::string content(const std::string& name) const {
    std::ifstream in(dir_.path() / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

  ScratchDir dir_;
};

constexpr const char* kAdmitted =
    R"({"id":"yes","policy":"restricted","numa_nodes":[0,1],"hints":{"gpu":[{"mask":[1],"preferred":true}]}})";
constexpr const char* kRefused = R"({"id":"no","policy":"restricted","numa_nodes":[0,1],"hints":{"gpu":[]}})";

TEST_F(AdmitVerb, AnswersOneLinePerCaseAndEndsWithZeroAlsoForRefusals) {
  const Ran ran = run(std::string(kAdmitted) + "\n\n" + kRefused + "\n");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(
      ran.out,
      "{\"id\":\"yes\",\"admit\":true,\"affinity\":[1],\"preferred\":true,\"reason\":\"\",\"devices\":null}\n"
      "{\"id\":\"no\",\"admit\":false,\"affinity\":[0,1],\"preferred\":false,\"reason\":\"TopologyAffinityError\","
      "\"devices\":null}\n");
}

TEST_F(AdmitVerb, JsonIsOneDocument) {
  const Ran ran = run(std::string(kAdmitted) + "\n" + kRefused + "\n", "--json");
  const json document = json::parse(ran.out);
  ASSERT_EQ(document.size(), 2U);
  EXPECT_EQ(document[1]["id"], "no");
  EXPECT_EQ(run("", "--json").out, "[]\n");
}

TEST_F(AdmitVerb, ABadCaseNamesItsLine) {
  const Ran ran = run(std::string(kAdmitted) + "\n{\"id\":2}\n");
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.out, HasSubstr("\"yes\""));
  EXPECT_EQ(ran.err, "mortise: standard input, line 2: case: needs either hints and numa_nodes, or node and pod\n");
  EXPECT_THAT(run("{").err, StartsWith("mortise: standard input, line 1: not JSON"));
}

}  // namespace
}  // namespace mortise::sim
