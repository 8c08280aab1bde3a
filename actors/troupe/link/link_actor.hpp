#pragma once
#include <caf/actor.hpp>
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>

#include "troupe/link/messages.hpp"
#include "troupe/transport/transport.hpp"

namespace troupe {

struct link_options {
  int remote_rank = 0;
  std::uint64_t generation = 0;
  transport* out = nullptr;
};

/// Takes messages to one remote node for one generation: local sends become frames.
///
///   message  -> reply  errors
///   outbound ->        a message that does not cross nodes ends the link: a mistake in this program
///
/// Proxies are bound to it: when it ends, so do they, and whoever monitors one gets a down message. Frames
/// from the remote node take the other way in without an actor (inbound_gate). Monitors nobody. Scheduled.
class link_state {
 public:
  static constexpr const char* actor_name = "link";
  link_state(caf::event_based_actor* self, link_options options);
  caf::behavior make_behavior();

 private:
  void on_outbound(const outbound& message);
  caf::event_based_actor* self_;
  link_options options_;
};

/// Stands for the actor `to` behind `link`: whatever is sent to the proxy goes there.
caf::actor spawn_proxy(caf::actor_system& system, const caf::actor& link, const actor_name& to);

}  // namespace troupe
