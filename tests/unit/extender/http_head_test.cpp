#include "scheduler/extender/http_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scheduler/extender/http_server.h"
#include "tests/unit/extender/raw_client.h"
#include "tests/unit/extender/test_cluster.h"

namespace mortise::extender {
namespace {

using testing::HasSubstr;

Result<Framing> framing_of(const std::string& fields) {
  return read_framing("POST /filter HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n");
}

TEST(Framing, TheLengthIsReadWhateverTheCaseAndSpaceAroundIt) {
  EXPECT_FALSE(framing_of("")->has_body());
  EXPECT_EQ(framing_of("Content-Length: 0\r\n")->length, 0U);
  EXPECT_EQ(framing_of("content-LENGTH:\t 42 \r\n")->length, 42U);
  EXPECT_EQ(framing_of("Content-Length: 0042\r\n")->length, 42U);
  EXPECT_TRUE(framing_of("Transfer-Encoding: Chunked\r\n")->chunked);
}

// RFC 9112, section 6.3: a length that is not understood, or more than one, is unrecoverable; a second reader on the
// way may see another end of the request (request smuggling).
const std::vector<std::string> kMalformed = {
    "Content-Length: 5\r\nContent-Length: 6\r\n",
    "Content-Length: 5\r\nContent-Length: 5\r\n",
    "Content-Length: 5,5\r\n",
    "Content-Length: 5, 5\r\n",
    "Content-Length: +5\r\n",
    "Content-Length: -5\r\n",
    "Content-Length: 5x\r\n",
    "Content-Length: 0x5\r\n",
    "Content-Length: 5.0\r\n",
    "Content-Length: %35\r\n",
    "Content-Length: \r\n",
    "Content-Length: 18446744073709551616\r\n",
    "Content-Length: 99999999999999999999999999\r\n",
    "Content-Length : 5\r\n",
    " Content-Length: 5\r\n",
    "Content-Length: 5\n",
    "Content-Length\r\n",
    "X: a\r\n b\r\n",
    "X: a\rb\r\n",
    ": empty\r\n",
    "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    "Transfer-Encoding: gzip, chunked\r\n",
    "Transfer-Encoding: gzip\r\n",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
};

TEST(Framing, WhatCouldBeUnderstoodInTwoWaysIsRefused) {
  for (const std::string& fields : kMalformed) EXPECT_FALSE(framing_of(fields).ok()) << fields;
  EXPECT_FALSE(read_framing("POST /filter HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n").ok());
  EXPECT_FALSE(read_framing("POST /filter HTTP/1.1\n\n").ok());
}

/// The same from outside: the verbs over a socket.
class BodyTest : public testing::Test {
 protected:
  BodyTest() {
    auto started = HttpServer::start_scheduler(cluster_.service(), {"127.0.0.1", 0}, {});
    EXPECT_TRUE(started.ok());
    server_ = *std::move(started);
  }
  RawClient connect() { return RawClient(server_->address()); }

  TestCluster cluster_;
  std::unique_ptr<HttpServer> server_;
};

const std::string kQuestion =
    R"({"Pod":{"metadata":{"name":"p","uid":"u1"},"spec":{"containers":[]}},"NodeNames":["n"]})";
const std::string kNamed = R"("NodeNames":["n"])";

TEST_F(BodyTest, AMalformedHeadIsAnswered400AndTheConnectionClosed) {
  for (const std::string& fields : kMalformed) {
    RawClient client = connect();
    // What follows must not be taken for a request of its own.
    ASSERT_TRUE(
        client.send("POST /filter HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n" + post_text("/filter", kQuestion)));
    const RawResponse response = client.receive().value_or(RawResponse{});
    EXPECT_EQ(response.status, 400) << fields;
    EXPECT_EQ(std::count(response.body.begin(), response.body.end(), '\n'), 1) << response.body;
    EXPECT_TRUE(client.closed_by_server()) << fields;
  }
}

TEST_F(BodyTest, AHugeLengthIsNoReasonToTakeMemory) {
  RawClient client = connect();
  ASSERT_TRUE(client.send("POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 9223372036854775807\r\n\r\n{"));
  RawClient other = connect();
  ASSERT_TRUE(other.send(post_text("/filter", kQuestion)));
  EXPECT_THAT(other.receive().value_or(RawResponse{}).body, HasSubstr(kNamed));
}

std::string chunked(const std::string& body, const std::string& trailers, const std::string& extension = "") {
  char size[32];
  std::snprintf(size, sizeof size, "%zX", body.size());
  return "POST /filter HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n" +
         std::string(size) + extension + "\r\n" + body + "\r\n0" + extension + "\r\n" + trailers + "\r\n";
}

TEST_F(BodyTest, TrailersOfAChunkedRequestAreReadAndDropped) {
  RawClient client = connect();
  for (const std::string& trailers :
       {std::string(), std::string("X-Sum: 1\r\n"), std::string("X-Sum: 1\r\nX-B: 2\r\n")}) {
    ASSERT_TRUE(client.send(chunked(kQuestion, trailers)));
    EXPECT_THAT(client.receive().value_or(RawResponse{}).body, HasSubstr(kNamed)) << trailers;
  }
  ASSERT_TRUE(client.send(chunked(kQuestion, "", ";name=value")));
  EXPECT_THAT(client.receive().value_or(RawResponse{}).body, HasSubstr(kNamed));
  ASSERT_TRUE(client.send(post_text("/filter", kQuestion)));  // the next one begins where it should
  EXPECT_THAT(client.receive().value_or(RawResponse{}).body, HasSubstr(kNamed));
}

TEST_F(BodyTest, MalformedChunksAreAnswered400AndTheConnectionClosed) {
  const std::string head = "POST /filter HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string& chunks :
       {std::string("+2\r\n{}\r\n0\r\n\r\n"), std::string("-2\r\n{}\r\n0\r\n\r\n"), std::string("\r\n{}\r\n0\r\n\r\n"),
        std::string("2\n{}\r\n0\r\n\r\n"), std::string("2\r\n{}X\r\n0\r\n\r\n"), std::string("2\r\n{}\n0\r\n\r\n"),
        std::string("11111111111111111\r\n{}\r\n0\r\n\r\n"), std::string("0\r\nno trailer\r\n\r\n"),
        std::string("0\r\n folded: 1\r\n\r\n"), "2;" + std::string(10'000, 'x') + "\r\n{}\r\n0\r\n\r\n"}) {
    RawClient client = connect();
    ASSERT_TRUE(client.send(head + chunks));
    EXPECT_EQ(client.receive().value_or(RawResponse{}).status, 400) << chunks.substr(0, 40);
    EXPECT_TRUE(client.closed_by_server()) << chunks.substr(0, 40);
  }
}

}  // namespace
}  // namespace mortise::extender
