#include "scheduler/extender/connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string_view>

namespace mortise::extender {
namespace {

class ConnectionTest : public testing::Test {
 protected:
  ConnectionTest() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_.data()), 0); }
  ~ConnectionTest() override {
    for (const int end : ends_) close(end);
  }
  void client_sends(char byte) { EXPECT_EQ(send(ends_[1], &byte, 1, 0), 1); }
  /// One byte for the server; empty: none comes.
  std::optional<char> next(Connection& connection) {
    const std::string_view there = connection.peek();
    if (there.empty()) return std::nullopt;
    const char byte = there[0];
    connection.consume(1);
    return byte;
  }

  ManualClock clock_;
  std::array<int, 2> ends_{};
};

// Go's client closes connections that were idle for 90 s; were we first, a request could meet our close.
TEST_F(ConnectionTest, IdleConnectionsAreKeptLongerThanTheClientKeepsThem) {
  EXPECT_GT(Connection::kIdleSeconds, 90);
}

TEST_F(ConnectionTest, ARequestThatTricklesIsCutOff) {
  Socket socket(ends_[0], clock_);
  Connection connection(socket);
  client_sends('P');
  ASSERT_TRUE(connection.wait_for_request(-1));
  ASSERT_EQ(next(connection), 'P');
  clock_.advance(Connection::kRequestSeconds * kSecond);
  client_sends('O');
  EXPECT_EQ(next(connection), 'O') << "within the time";
  clock_.advance(1);
  client_sends('S');
  EXPECT_EQ(next(connection), std::nullopt);
  EXPECT_TRUE(connection.broken());
}

TEST_F(ConnectionTest, TheTimeStartsAnewWithEachRequest) {
  Socket socket(ends_[0], clock_);
  Connection connection(socket);
  for (int request = 0; request < 3; ++request) {
    client_sends('P');
    ASSERT_TRUE(connection.wait_for_request(-1));
    ASSERT_EQ(next(connection), 'P');
    clock_.advance(Connection::kRequestSeconds * kSecond);
  }
  EXPECT_FALSE(connection.broken());
}

}  // namespace
}  // namespace mortise::extender
