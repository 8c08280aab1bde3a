#include "troupe/actor/actor_counts.hpp"

#include <algorithm>

namespace troupe::actors::actor {

void add_totals(actor_counts& to, const actor_counts& earlier) {
  to.messages_in += earlier.messages_in;
  to.messages_out += earlier.messages_out;
  to.frame_bytes_in += earlier.frame_bytes_in;
  to.frame_bytes_out += earlier.frame_bytes_out;
  to.handler_s += earlier.handler_s;
  to.handler_times.resize(std::max(to.handler_times.size(), earlier.handler_times.size()));
  for (std::size_t i = 0; i < earlier.handler_times.size(); ++i)
    to.handler_times[i] += earlier.handler_times[i];
}

}  // namespace troupe::actors::actor
