#pragma once
#include <string>

#include "troupe/config/environment/launch_environment.hpp"

namespace troupe::config {

/// What to tell a user whose launcher has started several processes in a way that read_launch_environment
/// does not understand, so that each is a job of its own. The text names the launcher, the variables that
/// were seen, and what to set. Empty: nothing of that kind was seen.
std::string warning_of_other_launcher(const environment_reader& read);

/// What to tell a user of `troupe launch` that was itself started as one of several processes, as by `srun
/// troupe launch` with two tasks: each is the launcher of a job of its own. Empty: it was not.
std::string warning_of_several_launchers(const environment_reader& read);

}  // namespace troupe::config
