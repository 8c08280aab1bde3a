#include "troupe/collective/network/algorithms.hpp"

namespace troupe::network {

// Dissemination (Hensgen, Finkel, Manber 1988): in round k everybody tells the one 2^k after it; after
// ceil(log2 n) rounds everybody has heard, by others, of all.
algorithm barrier(conversation at) {
  std::uint32_t round = 0;
  for (int distance = 1; distance < at.num_members(); distance *= 2, ++round) {
    at.send(at.after(distance), carried::inputs, round, {});
    at.receive(at.after(at.num_members() - distance), carried::inputs, round, {});
    co_await until([&] { return at.all_done(); });
  }
}

}  // namespace troupe::network
