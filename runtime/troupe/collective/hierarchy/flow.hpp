#pragma once
#include <memory>
#include <vector>

#include "troupe/collective/algorithm.hpp"
#include "troupe/collective/hierarchy/division.hpp"
#include "troupe/collective/hierarchy/site.hpp"

namespace troupe::hierarchy {

/// A large call on its way: its parts are algorithms that run side by side, so that one stretch is reduced,
/// or copied to the neighbours, while others are on the wire. The neighbours are within reach.
struct flow {
  site& at;
  division cut;
  /// Places of the neighbours whose outputs get results; this member receives into the first.
  std::vector<int> outputs = {};
  /// Hosts that get results.
  std::vector<int> results_to = {};

  /// Where these elements go in each of the outputs, until the algorithm waits the next time.
  std::vector<std::byte*> places_of(const share& elements) const;
};

/// Sends the takers on other hosts the nodes of this one of their stretches.
algorithm send_nodes(flow& in);
/// Reduces what this member takes, to `result` if there is one, else to the outputs, and sends it on.
algorithm reduce_taken(flow& in, std::byte* result);
/// Sends the elements of a stretch that this member takes and has to the hosts that get results.
std::vector<std::shared_ptr<const network::transfer>> send_taken(flow& in, const stretch& what,
                                                                 std::uint32_t number,
                                                                 std::span<const std::byte> taken);
/// Receives the results of the takers on other hosts, and brings them to all outputs.
algorithm take_results(flow& in);
/// Sends the takers on other hosts their stretches of these elements, which are neighbour `place`'s input,
/// and meanwhile brings all of them to this member's output.
algorithm send_input_of(flow& in, int place);
/// Receives what send_input_of on `host` sends, brings it to all outputs and sends it on.
algorithm pass_on(flow& in, int host);

/// Waits for algorithms that run side by side, until all messages have gone and come, and until the
/// neighbours are as far: nobody reaches for this member's tensors any more.
algorithm all_finished(site& at, std::vector<algorithm> parts);

}  // namespace troupe::hierarchy
