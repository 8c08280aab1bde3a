#include "troupe/actor/actor_name.hpp"

namespace troupe {

std::string to_string(const actor_name& name) {
  switch (name.role) {
    case actor_role::supervisor:
      return "supervisor";
    case actor_role::scheduler:
      return "scheduler";
    case actor_role::device:
      return "device/" + std::to_string(name.index);
    case actor_role::gatherer:
      return "gatherer";
  }
  return "unknown";
}

}  // namespace troupe
