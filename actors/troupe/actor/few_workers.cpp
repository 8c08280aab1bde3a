#include "troupe/actor/few_workers.hpp"

#include <caf/actor_system_config.hpp>
#include <caf/atom.hpp>

namespace troupe {

caf::actor_system_config& with_few_workers(caf::actor_system_config& config) {
  config.set("scheduler.max-threads", std::size_t{2});
  config.set("scheduler.policy", caf::atom("sharing"));
  return config;
}

}  // namespace troupe
