#pragma once
#include <array>
#include <string>

#include "troupe/collective/net/exchange/network_options.hpp"

namespace troupe::testing {

/// The network options with which a rank acts as if it were on a given host.
using network_of_rank = collective::network_options (*)(int rank);

inline collective::network_options on_one_host(int) { return {}; }
inline collective::network_options over_network(int) { return {.path = collective::group_path::network}; }
/// Ranks 0 and 1 on one host, 2 and 3 on the next.
inline collective::network_options on_hosts_of_two(int rank) {
  return {.host = "host-" + std::to_string(rank / 2)};
}

inline constexpr std::array all_networks{on_one_host, over_network, on_hosts_of_two};

}  // namespace troupe::testing
