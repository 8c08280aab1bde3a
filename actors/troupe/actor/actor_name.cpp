#include "troupe/actor/actor_name.hpp"

namespace troupe::actors::actor {
namespace {

std::string text_of(actor_role role) {
  switch (role) {
    case actor_role::supervisor:
      return "supervisor";
    case actor_role::scheduler:
      return "scheduler";
    case actor_role::device:
      return "device";
    case actor_role::gatherer:
      return "gatherer";
  }
  return "unknown";
}

}  // namespace

std::string to_string(const actor_name& name) {
  return text_of(name.role) + "/" + std::to_string(name.number) + "#" + std::to_string(name.incarnation);
}

}  // namespace troupe::actors::actor
