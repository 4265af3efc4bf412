#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>

#include "scheduler/base/result.h"
#include "scheduler/base/units.h"
#include "scheduler/extender/endpoint.h"
#include "scheduler/extender/small_thread.h"

namespace mortise::extender {

class Connection;
class TlsContext;

/// A listening socket with a thread for each connection.
class Listener {
 public:
  /// What a connection may expect.
  enum class Admission {
    kServed,
    kTurnedAway,  ///< there are too many: one request is read and answered that it is not served
  };
  using Serve = std::function<void(Connection&, Admission)>;

  struct Options {
    std::size_t max_connections = 0;
    const TlsContext* tls = nullptr;           ///< null: in the clear
    std::function<void(int by)> count_open{};  ///< of connections that are served
    std::function<void()> count_turned_away{};
  };

  explicit Listener(Options options) : options_(std::move(options)) {}
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  Status open(const Endpoint& at);
  /// `serve` is called on the thread of a connection, whose end ends the connection. Exceptions cost the connection.
  void run(Serve serve);
  /// Accepts no more; a request that has begun may take `grace` to be finished, then its connection is cut. `cut` is
  /// called then, to end what requests wait for: their threads are waited for. Safe to call twice.
  void stop(Nanoseconds grace, const std::function<void()>& cut = {});

  /// `ADDR:PORT` as bound.
  const std::string& address() const { return address_; }
  bool on_loopback() const { return loopback_; }
  bool stopping() const { return stopping_; }
  /// Readable once the listener stops.
  int stop_fd() const { return stop_fd_; }

 private:
  struct Worker {
    SmallThread thread;
    int fd = -1;  // -1 once the thread has nothing left to do
  };

  void accept_all();
  void accept_one();
  void serve(Worker& worker, Admission admission);
  void serve_socket(int fd, Admission admission);
  std::size_t& busy(Admission admission) { return admission == Admission::kServed ? served_ : turned_away_; }
  bool idle() const { return served_ + turned_away_ == 0; }
  void join_finished();

  const Options options_;
  Serve serve_;
  std::string address_;
  bool loopback_ = false;
  int fd_ = -1;
  int stop_fd_ = -1;
  std::thread accepter_;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;  // guards what follows
  std::condition_variable worker_done_;
  std::list<Worker> workers_;
  // Workers whose thread still has something to do.
  std::size_t served_ = 0;
  std::size_t turned_away_ = 0;
};

}  // namespace mortise::extender
