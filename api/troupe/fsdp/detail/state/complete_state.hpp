#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace troupe::detail {

/// A part of a state that a member holds.
struct known_part {
  std::int64_t step = 0, num_parts = 0, part = 0;
  int member = 0;
};

/// Where the parts of a state are.
struct complete_state {
  std::int64_t step = 0;
  std::vector<int> holders;  ///< members, by part
};

/// The newest state of which there are all parts; none if there is no such state. A part that a member of its
/// own number has is taken from there, others from the first that has it. A pure function: equal on all
/// members.
std::optional<complete_state> newest_complete_state(const std::vector<known_part>& known);

}  // namespace troupe::detail
