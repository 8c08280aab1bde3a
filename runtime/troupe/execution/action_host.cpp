#include "troupe/execution/action_host.hpp"

#include <stdexcept>

namespace troupe::execution {

void action_host::wait_within(const action& op, const plan_position&) {
  throw std::logic_error("[action_host] expected a host that waits within actions, for " + to_string(op));
}

}  // namespace troupe::execution
