#pragma once
#include <vector>

#include "troupe/collective/algorithm.hpp"
#include "troupe/collective/hierarchy/site.hpp"

namespace troupe::hierarchy {

/// What each host says as a whole in a small call, or nothing.
struct host_messages {
  std::span<const std::byte> own = {};               ///< said by each member of this host, alike
  std::vector<std::vector<std::byte>> of_host = {};  ///< heard, by host; of the size that is said
  int speaker = -1;                                  ///< the only host that says something; -1: all
  int hearer = -1;                                   ///< the only member who needs to hear it; -1: all
};

/// Everybody who needs it hears from each other host that speaks, by the member there that serves it.
algorithm exchange_messages(site& at, host_messages& said);

/// Nobody is done before members of all hosts have come, and before them their neighbours: a dissemination
/// (network/barrier.cpp) among hosts, after the neighbours have met. Other messages of the call may be on
/// their way meanwhile.
algorithm every_host_has_come(site& at);

}  // namespace troupe::hierarchy
