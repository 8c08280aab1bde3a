#pragma once

#include <cstddef>

#include "troupe/config/environment/launch_environment.hpp"

namespace troupe::config {

/// What a process records of itself (trace/recording.hpp).
struct events_environment {
  /// TROUPE_EVENTS: the newest events that each thread keeps, of 64 bytes each; 0: nothing is recorded.
  std::size_t events_per_thread = std::size_t{1} << 14;
  /// TROUPE_EVENTS_FD: the descriptor of the memory that `troupe launch` keeps for it; -1: none.
  int file = -1;
};

/// TROUPE_EVENTS: 0, or a number from 64 to 1048576; empty or not set: 16384. Throws bad_input for anything
/// else.
events_environment read_events_environment(const environment_reader& read);

/// How a process tells where its time in collective calls went when it ends.
enum class profile_form : std::uint8_t { none, table, json };

/// TROUPE_PROFILE: 1 for a table, json for one JSON object; 0, empty or not set: nothing. Throws bad_input
/// for anything else.
profile_form read_profile_environment(const environment_reader& read);

}  // namespace troupe::config
