#include "troupe/collective/network/algorithms.hpp"

namespace troupe::network {

// Dissemination (Hensgen, Finkel, Manber 1988): in round k everybody tells the one 2^k after it; after
// ceil(log2 n) rounds everybody has heard, by others, of all.
algorithm everyone_has_come(conversation& at) {
  std::uint32_t round = 0;
  for (int distance = 1; distance < at.num_members(); distance *= 2, ++round) {
    at.send(at.after(distance), carried::arrivals, round, {});
    at.receive(at.after(at.num_members() - distance), carried::arrivals, round, {});
    co_await until([&] { return at.all_done(); });
  }
}

algorithm barrier(conversation at) {
  auto part = everyone_has_come(at);
  co_await finished(part);
}

}  // namespace troupe::network
