#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "troupe/mesh/world_rank.hpp"

namespace troupe {
class communicator;
}  // namespace troupe

namespace troupe::execution {

/// A group over which replicas add up gradients.
struct wanted_group {
  std::uint64_t generation = 0;
  std::string name;               ///< unique in the generation
  std::vector<world_rank> ranks;  ///< of the members, ascending
  /// As in communicator_options.
  std::function<void()> on_call_end = nullptr;
  /// Called now and then while others are waited for, and as long as the group lives: throws
  /// collective_error when it is not wanted any more.
  std::function<void()> check = nullptr;
};

/// Makes this process's communicator of a group; blocks until all members do. Throws collective_error if a
/// member is lost or the generation ends meanwhile, what `check` throws, and bad_input. Called by one thread
/// at a time.
using group_maker = std::function<std::shared_ptr<communicator>(const wanted_group& wanted)>;

}  // namespace troupe::execution
