#pragma once

namespace caf {
class actor_system_config;
}

namespace troupe {

/// Gives an actor system two workers that share one queue, which is enough: devices have threads of their own
/// and cores are few. CAF's default, a worker a core, wakes each up again and again to look for work at the
/// others, on cores that compute or poll.
caf::actor_system_config& with_few_workers(caf::actor_system_config& config);

}  // namespace troupe
