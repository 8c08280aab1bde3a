#include "troupe/fsdp/detail/state/complete_state.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace troupe::detail {

std::optional<complete_state> newest_complete_state(const std::vector<known_part>& known) {
  constexpr int nobody = -1;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<int>> holders;  // by step, number of parts
  for (const auto& each : known) {
    auto& of_state = holders[{each.step, each.num_parts}];
    of_state.resize(static_cast<std::size_t>(each.num_parts), nobody);
    auto& holder = of_state[static_cast<std::size_t>(each.part)];
    if (holder == nobody || each.member == each.part) holder = each.member;
  }
  for (auto state = holders.rbegin(); state != holders.rend(); ++state)
    if (std::ranges::count(state->second, nobody) == 0)
      return complete_state{state->first.first, state->second};
  return {};
}

}  // namespace troupe::detail
