#pragma once
#include <atomic>
#include <string>
#include <thread>

namespace troupe::testing {

/// A thread in a network namespace that connects again and again to every port on which a process listens
/// there, sends nothing, and keeps the connections open: from construction to destruction.
class port_flood {
 public:
  /// `network`: as for `ip netns exec`.
  explicit port_flood(const std::string& network);
  ~port_flood();
  port_flood(const port_flood&) = delete;
  port_flood& operator=(const port_flood&) = delete;

  /// Connections that were made so far.
  int num_connections() const { return num_connections_; }

 private:
  void run(const std::string& network);

  std::atomic<bool> stop_ = false;
  std::atomic<int> num_connections_ = 0;
  std::thread thread_;
};

}  // namespace troupe::testing
