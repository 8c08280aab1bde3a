#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "troupe/posix/unique_fd.hpp"

namespace troupe::messaging {

/// Identifies a process among all that ever have the same rank, host and port.
using process_id = std::array<std::byte, 16>;

/// Where a process listens for control connections.
struct control_address {
  std::string host;  ///< an IPv4 or IPv6 address in numbers
  std::uint16_t port = 0;
  process_id process{};
  bool operator==(const control_address&) const = default;
};

std::vector<std::byte> encode_control_address(const control_address& address);
/// Throws decode_error.
control_address decode_control_address(const std::vector<std::byte>& bytes);

/// A socket that listens on any free port of a network interface ("lo"), and only there. Throws bad_input if
/// there is no such interface or it has no address, and system_failure.
struct control_listener {
  posix::unique_fd socket;
  control_address address;
};
control_listener listen_on(const std::string& interface);

/// Starts to connect a socket, without waiting. Throws system_failure if the attempt cannot be started, and
/// std::invalid_argument if the host is not an address in numbers.
posix::unique_fd connect_to(const control_address& address);

}  // namespace troupe::messaging
