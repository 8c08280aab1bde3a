#include "troupe/actor/use_two_workers.hpp"

#include <caf/actor_system_config.hpp>
#include <caf/atom.hpp>

namespace troupe::actors::actor {

caf::actor_system_config& use_two_workers(caf::actor_system_config& config) {
  config.set("scheduler.max-threads", std::size_t{2});
  config.set("scheduler.policy", caf::atom("sharing"));
  return config;
}

}  // namespace troupe::actors::actor
