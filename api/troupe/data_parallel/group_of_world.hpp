#pragma once
#include <memory>

#include "troupe/collective/communicator/communicator.hpp"

namespace troupe {

/// Throws bad_input unless there is one: --replicas are those of a Pipeline. `user`: what does not use them.
void refuse_pipeline_replicas(int replicas, const char* user);

/// All processes of a World, whose options must have one replica.
template <class Processes>
std::shared_ptr<communicator> group_without_pipeline_replicas(Processes& world, const char* user) {
  if constexpr (requires { world.options().replicas; })
    refuse_pipeline_replicas(world.options().replicas, user);
  return world.default_group();
}

}  // namespace troupe
