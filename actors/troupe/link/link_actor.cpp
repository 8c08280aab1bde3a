#include "troupe/link/link_actor.hpp"

#include <caf/actor_system.hpp>
#include <caf/message_view.hpp>
#include <caf/type_erased_tuple.hpp>
#include <caf/unit.hpp>
#include <stdexcept>

#include "troupe/link/wire_table.hpp"

namespace troupe {
namespace {

/// Never sent. An actor with an empty behavior would end, so the proxy needs a handler.
using unused = caf::unit_t;

}  // namespace

link_state::link_state(caf::event_based_actor* self, link_options options)
    : self_(self), options_(std::move(options)) {}

caf::behavior link_state::make_behavior() {
  return {[this](const outbound& message) { on_outbound(message); }};
}

void link_state::on_outbound(const outbound& message) {
  auto body = encode_message(message.to, message.content);
  if (!body)
    throw std::logic_error("[link] expected a message that crosses nodes, got one for " +
                           to_string(message.to));
  options_.out->send_control(options_.remote_rank, options_.generation, *body);
}

caf::actor spawn_proxy(caf::actor_system& system, const caf::actor& link, const actor_name& to) {
  return system.spawn([link, to](caf::event_based_actor* self) -> caf::behavior {
    // Not link_to, which is mutual: a proxy without handles would end the link when it ends.
    self->monitor(link);
    self->set_down_handler([self](const caf::down_msg& down) { self->quit(down.reason); });
    self->set_default_handler(
        [self, link, to](caf::scheduled_actor*, caf::message_view& content) -> caf::result<caf::message> {
          self->send(link, outbound{to, content.move_content_to_message()});
          return caf::message();
        });
    return {[](const unused&) {}};
  });
}

}  // namespace troupe
