#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// What a member of a group tells the others about where it is.
struct member_card {
  std::string host;  ///< the kernel's boot, the network and PID namespaces and the user: alike where
                     ///< processes may share memory
  std::uint64_t process = 0;
  std::string address;  ///< of its peer_exchange
  std::string sizes;    ///< its network_sizes
  bool is_on_host_of(const member_card& other) const { return host == other.host; }
};

/// Of this process.
std::string this_host();
std::string to_string(const member_card& card);
/// Throws std::runtime_error if a text is none.
std::vector<member_card> parse_cards(const std::vector<std::string>& texts);

}  // namespace troupe
