#include "scheduler/extender/connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace mortise::extender {
namespace {

class ConnectionTest : public testing::Test {
 protected:
  ConnectionTest() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_.data()), 0); }
  ~ConnectionTest() override {
    for (const int end : ends_) close(end);
  }
  void client_sends(char byte) { EXPECT_EQ(send(ends_[1], &byte, 1, 0), 1); }
  int server_end() const { return ends_[0]; }

  ManualClock clock_;
  char got_ = 0;

 private:
  std::array<int, 2> ends_{};
};

TEST_F(ConnectionTest, ARequestThatTricklesIsCutOff) {
  Connection connection(server_end(), clock_);
  client_sends('P');
  ASSERT_TRUE(connection.wait_for_request());
  ASSERT_EQ(connection.read(&got_, 1), 1);
  clock_.advance(Connection::kRequestSeconds * kSecond);
  client_sends('O');
  EXPECT_EQ(connection.read(&got_, 1), 1) << "within the time";
  clock_.advance(1);
  client_sends('S');
  EXPECT_EQ(connection.read(&got_, 1), -1);
  EXPECT_TRUE(connection.broken());
}

TEST_F(ConnectionTest, TheTimeStartsAnewWithEachRequest) {
  Connection connection(server_end(), clock_);
  for (int request = 0; request < 3; ++request) {
    client_sends('P');
    ASSERT_TRUE(connection.wait_for_request());
    ASSERT_EQ(connection.read(&got_, 1), 1);
    clock_.advance(Connection::kRequestSeconds * kSecond);
  }
  EXPECT_FALSE(connection.broken());
}

}  // namespace
}  // namespace mortise::extender
