#pragma once

namespace caf {
class actor_system_config;
}

namespace troupe::actors::actor {

/// Configures an actor system with two scheduler threads that share one queue (policy "sharing"). Devices run
/// detached, so little work is left for the scheduler. CAF's default is one work-stealing thread per core;
/// these wake up periodically to steal, on cores that compute or poll.
caf::actor_system_config& use_two_workers(caf::actor_system_config& config);

}  // namespace troupe::actors::actor
