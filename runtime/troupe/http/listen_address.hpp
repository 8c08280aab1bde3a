#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::http {

/// Where a server listens.
struct listen_address {
  std::string address = "127.0.0.1";  ///< IPv4 or IPv6, in numbers
  std::uint16_t port = 0;             ///< 0: any free one
  bool operator==(const listen_address&) const = default;

  /// Only processes of this machine reach it.
  bool is_loopback() const;
};

/// "127.0.0.1:8080", "127.0.0.1", "8080", "localhost:8080", "[::1]:8080", "0.0.0.0:8080". What is left out is
/// as in listen_address. Throws bad_input for anything else, names of hosts among it.
listen_address listen_address_from(std::string_view text);

/// ADDRESS:PORT, an IPv6 address in brackets.
std::string to_string(const listen_address& shown);

/// Whether the text is an IPv4 or IPv6 address in numbers, without brackets.
bool is_ip_address(std::string_view text);

}  // namespace troupe::http
