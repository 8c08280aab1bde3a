#include "troupe/link/forwarding_actor.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_config.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/make_actor.hpp>
#include <caf/system_messages.hpp>
#include <utility>

namespace troupe::actors::link {

void forwarding_actor::enqueue(caf::mailbox_element_ptr message, caf::execution_unit* host) {
  if (message->content().match_elements<caf::exit_msg>())
    return kill_proxy(host, message->content().get_as<caf::exit_msg>(0).reason);
  if (!getf(is_terminated_flag)) return take_(*message);
  // Not bounce(), which does not tell the reason.
  if (message->mid.is_request() && message->sender)
    message->sender->enqueue(nullptr, message->mid.response_id(), caf::make_message(fail_state()), host);
}

void forwarding_actor::kill_proxy(caf::execution_unit* host, caf::error reason) {
  cleanup(std::move(reason), host);
}

caf::actor make_forwarding_actor(caf::actor_system& system, forwarding_actor::receiver take) {
  caf::actor_config config;
  return caf::make_actor<forwarding_actor, caf::actor>(system.next_actor_id(), system.node(), &system, config,
                                                       std::move(take));
}

void end_forwarding_actor(const caf::actor& which, const caf::error& reason) {
  dynamic_cast<forwarding_actor&>(*caf::actor_cast<caf::abstract_actor*>(which)).kill_proxy(nullptr, reason);
}

}  // namespace troupe::actors::link
