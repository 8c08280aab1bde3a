#include "troupe/detail/replica_weights.hpp"

namespace troupe::detail {

std::string note_on_weights(const std::string& call, int average_every, std::uint64_t steps) {
  if (average_every == 0) return {};
  auto every = static_cast<std::uint64_t>(average_every);
  auto since = steps % every;
  if (since == 0) return {};
  return call + " is about the weights of replica 0: each replica has made " + std::to_string(since) +
         (since == 1 ? " step" : " steps") +
         " of its own since the last average. The next average is after " + std::to_string(every - since) +
         " more (average_every " + std::to_string(average_every) + ")";
}

}  // namespace troupe::detail
