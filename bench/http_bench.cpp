// Posts one body again and again over one connection and prints the latencies as JSON.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "bench/echo_server.h"
#include "bench/http_client.h"

namespace {

using mortise::Error;
using mortise::Result;

struct Options {
  std::uint16_t port = 0;
  bool echo = false;
  std::string path = "/filter";
  std::string body_file;
  std::string mark;
  std::string save;
  std::size_t warm = 100;
  std::size_t requests = 1000;
};

struct Figures {
  std::vector<std::int64_t> nanoseconds;  // ascending
  std::size_t response_bytes = 0;
};

/// Overwrites every occurrence of the mark with the number of the request: each one asks about another pod.
void number_request(std::string& request, const std::vector<std::size_t>& marks, std::size_t width,
                    std::size_t number) {
  std::string digits = std::to_string(number);
  digits.insert(0, width - std::min(width, digits.size()), '0');
  for (const std::size_t at : marks) request.replace(at, width, digits, 0, width);
}

Result<Figures> measure(const Options& options, std::uint16_t port, const std::string& body) {
  auto connection = mortise::bench::connect_loopback(port);
  if (!connection) return connection.error();
  std::string request = "POST " + options.path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n" +
                        "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  std::vector<std::size_t> marks;
  if (!options.mark.empty()) {
    for (std::size_t at = 0; (at = request.find(options.mark, at)) != std::string::npos; ++at) marks.push_back(at);
  }
  Figures figures;
  std::string buffer;
  for (std::size_t i = 0; i < options.warm + options.requests; ++i) {
    number_request(request, marks, options.mark.size(), i);
    const auto start = std::chrono::steady_clock::now();
    if (!mortise::bench::send_all(connection->fd(), request)) return Error{"the server closed the connection"};
    const auto answer = mortise::bench::read_message(connection->fd(), buffer);
    const auto took = std::chrono::steady_clock::now() - start;
    if (!answer) return answer.error();
    if (!answer->head.starts_with("HTTP/1.1 200 ")) return Error{"answered " + answer->head.substr(0, 60)};
    figures.response_bytes = answer->body_size;
    if (i >= options.warm) figures.nanoseconds.push_back(std::chrono::nanoseconds(took).count());
    if (i == 0 && !options.save.empty()) {
      std::ofstream(options.save, std::ios::binary) << buffer.substr(answer->head.size() + 2, answer->body_size);
    }
  }
  std::sort(figures.nanoseconds.begin(), figures.nanoseconds.end());
  return figures;
}

double percentile_ms(const Figures& figures, std::size_t percent) {
  constexpr double kPerMs = 1e6;
  const std::size_t last = figures.nanoseconds.size() - 1;
  return static_cast<double>(figures.nanoseconds[last * percent / 100]) / kPerMs;
}

int run(const Options& options) {
  std::ifstream in(options.body_file, std::ios::binary);
  const std::string body((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (!in.is_open()) {
    std::fprintf(stderr, "bench_http: cannot read %s\n", options.body_file.c_str());
    return 2;
  }
  const auto echo = options.echo ? std::make_unique<mortise::bench::EchoServer>() : nullptr;
  const auto figures = measure(options, echo ? echo->port() : options.port, body);
  if (!figures) {
    std::fprintf(stderr, "bench_http: %s\n", figures.message().c_str());
    return 1;
  }
  std::printf("{\"requests\":%zu,\"request_bytes\":%zu,\"response_bytes\":%zu,\"min_ms\":%.4f,\"p50_ms\":%.4f,",
              options.requests, body.size(), figures->response_bytes, percentile_ms(*figures, 0),
              percentile_ms(*figures, 50));
  std::printf("\"p99_ms\":%.4f,\"max_ms\":%.4f}\n", percentile_ms(*figures, 99), percentile_ms(*figures, 100));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Measures the latency of an HTTP server on this machine");
  app.add_option("--body", options.body_file, "file to post")->required();
  app.add_option("--port", options.port, "server on 127.0.0.1");
  app.add_flag("--echo", options.echo, "measure a built-in server that sends the body back");
  app.add_option("--path", options.path, "path to post to")->capture_default_str();
  app.add_option("--mark", options.mark, "text in the body that is replaced by the number of the request");
  app.add_option("--save", options.save, "file for the body of the first answer");
  app.add_option("--warm", options.warm, "requests before measuring")->capture_default_str();
  app.add_option("--requests", options.requests, "requests measured")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  return run(options);
}
