#pragma once
#include <chrono>
#include <cstdint>
#include <string>

#include "troupe/collective/network/network_sizes.hpp"

namespace troupe {

/// How the processes of a group reach each other.
enum class group_path : std::uint8_t {
  nearest,  ///< each other's memory on one host, the network between hosts
  network   ///< always the network, for tests and for measuring
};

/// Groups between hosts. The same on all members, but for `host`.
struct network_options {
  /// What this process calls its host: processes share memory with those that call theirs the same. Empty:
  /// the kernel, network namespace and user are asked. For tests and measurements on one machine.
  std::string host = {};
  /// Network interface UCX may use: its private network's name for jobs between hosts. UCX trusts whoever
  /// reaches its port there.
  std::string interface = "lo";
  group_path path = group_path::nearest;
  network_sizes sizes = {};
  /// How long a member that gives up, or ends, waits for its last words to leave.
  std::chrono::milliseconds farewell = std::chrono::milliseconds(200);
  /// How long a member whose call did not end in time waits for the others to say what they do.
  std::chrono::milliseconds answers = std::chrono::milliseconds(300);
};

}  // namespace troupe
