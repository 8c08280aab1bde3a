#pragma once
#include <caf/actor.hpp>
#include <caf/actor_proxy.hpp>
#include <caf/actor_system.hpp>
#include <caf/error.hpp>
#include <functional>

namespace troupe::actors::link {

/// An actor without mailbox and thread: what is sent to it is passed to a function on the sender's thread. It
/// can be monitored. It ends by end_forwarding_actor or an exit message; after that requests are answered
/// with the reason, and other messages are dropped, as with every actor.
class forwarding_actor final : public caf::actor_proxy {
 public:
  /// Gets messages, requests and responses; thread-safe.
  using receiver = std::function<void(caf::mailbox_element&)>;
  forwarding_actor(caf::actor_config& config, receiver take)
      : caf::actor_proxy(config), take_(std::move(take)) {}

  using caf::actor_proxy::enqueue;
  void enqueue(caf::mailbox_element_ptr message, caf::execution_unit* host) override;
  void kill_proxy(caf::execution_unit* host, caf::error reason) override;
  const char* name() const override { return "forwarding actor"; }

 private:
  receiver take_;
};

caf::actor make_forwarding_actor(caf::actor_system& system, forwarding_actor::receiver take);
/// Actors that monitor it get a down message with the reason.
void end_forwarding_actor(const caf::actor& which, const caf::error& reason);

}  // namespace troupe::actors::link
