#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "troupe/schedule/simulation/simulate.hpp"

namespace troupe::schedule {

/// Does a device run more than one stage, so that microbatch numbers alone do not say what ran?
bool several_stages(const std::vector<timed_action>& device);

/// How many characters a box has room for, for a whole action ("1F0") and for a microbatch number.
struct label_widths {
  std::size_t whole = 0;
  std::size_t number = 0;
};

/// What to write into an action's box: the whole action if there is room, else its microbatch number, or its
/// kind where it is of none, if there is room, else nothing.
std::string fitting_label(const action& op, label_widths widths);

/// Neighbours get two shades in turn: by stage where a device has several, else by microbatch.
bool is_odd(const action& op, bool with_stage);

}  // namespace troupe::schedule
