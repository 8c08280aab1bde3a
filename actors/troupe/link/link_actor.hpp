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

/// Sends local actors' messages to one remote node as control frames, for one generation. Local actors send
/// to a proxy (spawn_proxy), which forwards to the link.
///
/// States: none; the supervisor ends the link with its generation.
///
///   message  -> reply  errors
///   outbound ->        a message type without a wire format ends the link (a bug of this program)
///
/// Proxies end with the link, and actors that monitor a proxy get a down message. Frames from the remote node
/// do not pass through the link; inbound_gate delivers them. Monitors no actor. Scheduled: send_control does
/// not block.
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

/// A proxy for the remote actor `to`: it forwards every message it gets through `link`.
caf::actor spawn_proxy(caf::actor_system& system, const caf::actor& link, const actor_name& to);

}  // namespace troupe
