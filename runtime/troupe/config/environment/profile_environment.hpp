#pragma once
#include "troupe/config/environment/launch_environment.hpp"

namespace troupe::config {

/// How a process tells where its time in collective calls went when it ends.
enum class profile_form : std::uint8_t { none, table, json };

/// TROUPE_PROFILE: 1 for a table, json for one JSON object; 0, empty or not set: nothing. Throws bad_input
/// for anything else.
profile_form read_profile_environment(const environment_reader& read);

}  // namespace troupe::config
