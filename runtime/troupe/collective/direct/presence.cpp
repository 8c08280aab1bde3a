#include "troupe/collective/direct/presence.hpp"

namespace troupe::direct {

presence::presence(std::vector<running_call>& all, board& at, const collective_operation& what,
                   std::uint64_t sequence)
    : all_(&all), at_(at), call_{&what, sequence} {
  all.push_back(call_);
  if (is_collective()) at_.enter(sequence, what.signature);
}

void presence::end() {
  std::erase_if(*all_, [&](const running_call& each) { return each.what == call_.what; });
  // A call that failed is not left; its group has been aborted.
  if (is_collective() && !at_.is_aborted()) at_.leave(call_.sequence);
}

}  // namespace troupe::direct
