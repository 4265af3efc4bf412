#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/tree.h"
#include "tests/unit/extender/certificates.h"
#include "tests/unit/extender/raw_client.h"

namespace mortise::extender {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// mortise-extender as a child process.
class Process {
 public:
  explicit Process(std::vector<std::string> arguments, const char* out_file = nullptr) {
    arguments.insert(arguments.begin(), mortise::test::binary_dir() + "/mortise-extender");
    int out[2];
    int err[2];
    EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(err, O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(out_file != nullptr ? open(out_file, O_WRONLY | O_CLOEXEC) : out[1], STDOUT_FILENO);
      dup2(err[1], STDERR_FILENO);
      std::vector<char*> argv;
      for (std::string& argument : arguments) argv.push_back(argument.data());
      argv.push_back(nullptr);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(out[1]);
    close(err[1]);
    out_ = fdopen(out[0], "r");
    err_ = fdopen(err[0], "r");
  }
  ~Process() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    std::fclose(out_);
    std::fclose(err_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  std::string out_line() { return line(out_); }
  std::string err_line() { return line(err_); }
  std::string rest_of_out() { return rest(out_); }
  std::string rest_of_err() { return rest(err_); }
  void signal(int number) const { kill(pid_, number); }
  /// The exit code; -1 when a signal ended it.
  int wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  static std::string line(FILE* from) {
    std::string text;
    for (int c = std::fgetc(from); c != EOF && c != '\n'; c = std::fgetc(from)) text += static_cast<char>(c);
    return text;
  }
  static std::string rest(FILE* from) {
    std::string text;
    for (int c = std::fgetc(from); c != EOF; c = std::fgetc(from)) text += static_cast<char>(c);
    return text;
  }

  pid_t pid_ = -1;
  FILE* out_ = nullptr;
  FILE* err_ = nullptr;
};

std::string write_file(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "mortise-" + std::to_string(getpid()) + "-" + name;
  std::ofstream(path) << text;
  return path;
}

std::string cluster_file() {
  return write_file("nodes.csv", "sn,cpu_milli,memory_mib,gpu,model\nn1,64000,262144,8,A100\nn2,64000,262144,2,T4\n");
}

TEST(ExtenderProcess, SaysWhereItListensServesAndEndsOnSigterm) {
  for (const int stop : {SIGTERM, SIGINT}) {
    Process process({"--cluster", cluster_file(), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"});
    const std::string listening = process.out_line();
    const std::string admin = process.out_line();
    ASSERT_THAT(listening, StartsWith("listening on 127.0.0.1:"));
    ASSERT_THAT(admin, StartsWith("admin on 127.0.0.1:"));
    RawClient client(listening.substr(listening.rfind(' ') + 1));
    ASSERT_TRUE(client.send(post_text(
        "/filter", R"({"Pod":{"metadata":{"name":"p","uid":"u"},"spec":{"containers":[{"name":"c","resources":)"
                   R"({"limits":{"nvidia.com/gpu":"4"}}}]}},"NodeNames":["n1","n2"]})")));
    EXPECT_THAT(client.receive().value_or(RawResponse{}).body, HasSubstr(R"("NodeNames":["n1"])"));
    RawClient scrape(admin.substr(admin.rfind(' ') + 1));
    ASSERT_TRUE(scrape.send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"));
    EXPECT_THAT(scrape.receive().value_or(RawResponse{}).body, HasSubstr("\nmortise_cluster_gpus 10\n"));
    process.signal(stop);
    EXPECT_EQ(process.wait(), 0);
  }
}

/// A pod of one GPU on n1.
std::string bound_pod(const std::string& uid, int priority, const std::string& start) {
  return R"({"kind":"Pod","metadata":{"namespace":"d","name":")" + uid + R"(","uid":")" + uid +
         R"("},"spec":{"nodeName":"n1","priority":)" + std::to_string(priority) +
         R"(,"containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"1"}}}]},)" +
         R"("status":{"phase":"Running","startTime":")" + start + R"("}})";
}

TEST(ExtenderProcess, PreemptKnowsThePodsOfTheClusterFile) {
  const std::string file =
      write_file("snapshot.json",
                 R"({"kind":"List","items":[{"kind":"Node","metadata":{"name":"n1"},"status":{"allocatable":)"
                 R"({"cpu":"8","memory":"8Gi","pods":"110","nvidia.com/gpu":"3"}}},)" +
                     bound_pod("old", 5, "2025-01-01T00:00:00Z") + "," + bound_pod("new", 5, "2025-01-02T00:00:00Z") +
                     "," + bound_pod("high", 7, "2025-01-03T00:00:00Z") + "]}");
  Process process({"--cluster", file, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"});
  const std::string listening = process.out_line();
  ASSERT_THAT(listening, StartsWith("listening on 127.0.0.1:"));
  RawClient client(listening.substr(listening.rfind(' ') + 1));
  ASSERT_TRUE(client.send(post_text(
      "/preempt", R"({"Pod":{"metadata":{"name":"p","uid":"u"},"spec":{"priority":100,"containers":[{"name":"c",)"
                  R"("resources":{"limits":{"nvidia.com/gpu":"1"}}}]}},"NodeNameToMetaVictims":{"n1":{"Pods":[]}}})")));
  EXPECT_EQ(client.receive().value_or(RawResponse{}).body,
            R"({"NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"new"}],"NumPDBViolations":0}}})");
}

TEST(ExtenderProcess, ABadCommandLineOrFileIsOneLineAndExitCode2) {
  const std::string good = cluster_file();
  const std::string ranks = write_file("ranks", "n1 first\n");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "--cluster"},
      {{"--cluster", "/no/such/file"}, "/no/such/file"},
      {{"--cluster", write_file("bad.csv", "sn,cpu_milli\nx,y\n")}, "bad.csv"},
      {{"--cluster", good, "--policy", "magic"}, "unknown policy 'magic'; known: "},
      {{"--cluster", good, "--node-rank", ranks}, ranks + ":1"},
      {{"--cluster", good, "--typical", "/no/such/trace"}, "/no/such/trace"},
      {{"--cluster", good, "--listen", "nowhere"}, "--listen: 'nowhere' is not ADDR:PORT"},
      {{"--cluster", good, "--admin", "127.0.0.1:x"}, "--admin: "},
      {{"--cluster", good, "--listen", "203.0.113.1:0", "--admin", "127.0.0.1:0"}, "cannot listen on 203.0.113.1:0"},
      {{"--cluster", good, "--max-request-mib", "0"}, "--max-request-mib"},
      {{"--cluster", good, "--max-connections", "0"}, "--max-connections"},
      {{"--cluster", good, "--admin-token-file", "/no/token"}, "--admin-token-file /no/token: "},
      {{"--cluster", good, "--tls-cert", good}, "--tls-key"},
      {{"--cluster", good, "--tls-client-ca", good}, "--tls-cert"},
      {{"--cluster", good, "--tls-cert", "/no/cert", "--tls-key", "/no/key"}, "--tls-cert /no/cert: "},
      {{"--cluster", good, "--no-such-flag"}, "--no-such-flag"},
      {{"--cluster", good, "--log-level", "loud"}, "--log-level"},
      {{"--cluster", good, "--log-format", "xml"}, "--log-format"},
      {{"--cluster", good, "--seed", "x"}, "--seed"},
      {{"--cluster", good, "--seed", "-1"}, "--seed: '-1'; allowed: a whole number from 0 to 18446744073709551615"},
      {{"--cluster", good, "--max-verbs", "-1"}, "--max-verbs: '-1'; allowed: a whole number from 0 to 4096"},
      {{"--cluster", good, "--max-connections", "1.5"}, "allowed: a whole number from 1 to 32768"},
      {{"--cluster", good, "--shutdown-grace", "99999999999999999999"}, "allowed: a whole number from 0 to 3600"},
  };
  for (const auto& [arguments, expected] : cases) {
    Process process(arguments);
    const std::string err = process.rest_of_err();
    EXPECT_THAT(err, StartsWith("mortise-extender: "));
    EXPECT_THAT(err, HasSubstr(expected));
    EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 1) << err;
    EXPECT_EQ(process.out_line(), "");
    EXPECT_EQ(process.wait(), 2) << err;
  }
}

TEST(ExtenderProcess, SighupReadsTheCertificateAgainAndKeepsTheOldOneWhenItIsBroken) {
  const std::string cert = write_file("cert.pem", "");
  const std::string key = write_file("key.pem", "");
  const TestCertificate first("first");
  first.write_certificate(cert);
  first.write_key(key);
  Process process({"--cluster", cluster_file(), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--tls-cert", cert,
                   "--tls-key", key, "--log-level", "warn"});
  process.out_line();
  const std::string admin = process.out_line();
  TestCertificate("second").write_certificate(cert);
  process.signal(SIGHUP);
  EXPECT_THAT(process.err_line(), HasSubstr("--tls-key " + key));
  RawClient scrape(admin.substr(admin.rfind(' ') + 1));
  ASSERT_TRUE(scrape.send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"));
  EXPECT_THAT(scrape.receive().value_or(RawResponse{}).body, HasSubstr("\nmortise_tls_reload_errors_total 1\n"));
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait(), 0);
}

TEST(ExtenderProcess, LogsAsJsonWhatItDoes) {
  Process process(
      {"--cluster", cluster_file(), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--log-format", "json"});
  EXPECT_THAT(process.err_line(), HasSubstr("\"event\":\"serving\""));
  EXPECT_THAT(process.err_line(), HasSubstr("\"event\":\"ready\""));
  process.signal(SIGTERM);
  EXPECT_THAT(process.rest_of_err(), HasSubstr("\"event\":\"stopping\""));
  EXPECT_EQ(process.wait(), 0);
}

TEST(ExtenderProcess, HelpNamesFlagsAndPolicies) {
  Process process({"--help"});
  const std::string text = process.rest_of_out();
  EXPECT_THAT(text, HasSubstr("--cluster"));
  EXPECT_THAT(text, HasSubstr("gpu-packing"));
  EXPECT_EQ(process.wait(), 0);
}

TEST(ExtenderProcess, SaysItsVersion) {
  Process process({"--version"});
  EXPECT_THAT(process.rest_of_out(), testing::MatchesRegex("mortise-extender [0-9]+\\.[0-9]+\\.[0-9]+\n"));
  EXPECT_EQ(process.wait(), 0);
}

TEST(ExtenderProcess, HelpThatCannotBeWrittenIsAnError) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full here";
  Process process({"--help"}, "/dev/full");
  EXPECT_EQ(process.rest_of_err(), "mortise-extender: cannot write to standard output\n");
  EXPECT_EQ(process.wait(), 2);
}

}  // namespace
}  // namespace mortise::extender
