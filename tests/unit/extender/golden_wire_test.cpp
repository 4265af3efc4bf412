#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "tests/support/tree.h"
#include "tests/unit/extender/test_cluster.h"

namespace mortise::extender {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = fs::path(mortise::test::source_dir()) / "tests/golden/wire";

std::string read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

Reply post(Service& service, const std::string& case_name, std::string body) {
  if (case_name.starts_with("filter")) return service.filter(std::move(body));
  if (case_name.starts_with("prioritize")) return service.prioritize(std::move(body));
  if (case_name.starts_with("bind")) return service.bind(std::move(body));
  if (case_name.starts_with("preempt")) return service.preempt(std::move(body));
  ADD_FAILURE() << case_name << " names no verb";
  return {};
}

TEST(GoldenWire, EveryRecordedRequestGetsItsAnswer) {
  std::set<std::string> cases;
  constexpr std::string_view kRequest = ".request.json";
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    const std::string name = entry.path().filename();
    if (name.ends_with(kRequest)) cases.insert(name.substr(0, name.size() - kRequest.size()));
  }
  EXPECT_GE(cases.size(), 24U);
  for (const std::string& name : cases) {
    SCOPED_TRACE(name);
    TestCluster cluster;
    cluster.occupy("big-b", 5);
    if (name.starts_with("preempt")) {
      cluster.hold("low-10", "big-a", 4, 10);
      cluster.hold("low-20", "big-a", 4, 20);
    }
    const fs::path before = kFolder / (name + ".before.json");
    if (fs::exists(before)) {
      EXPECT_EQ(cluster.service().filter(read_text(before)).status, 200);
    }
    const Reply reply = post(cluster.service(), name, read_text(kFolder / (name + ".request.json")));
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, read_text(kFolder / (name + ".response.json")));
  }
}

}  // namespace
}  // namespace mortise::extender
