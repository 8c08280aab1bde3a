#pragma once
#include <atomic>
#include <string>
#include <thread>

namespace troupe::testing {

/// Somebody in a network namespace who connects to every port on which anybody listens there, again and
/// again, says nothing, and stays as long as he can: from construction to destruction, on a thread.
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
