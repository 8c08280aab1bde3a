#pragma once
#include <caf/mailbox_element.hpp>
#include <utility>

#include "troupe/actor/actor_of.hpp"
#include "troupe/transport/transport.hpp"

namespace troupe::actors::actor {

/// An actor that sleeps in the transport (transport::receive_for) instead of its mailbox, so that it receives
/// tensors on its own thread. Enqueuing a message wakes it there. Must be spawned detached.
/// `system.spawn<receiving_actor<device_state>, caf::detached>(source, options)`; `source` outlives it.
template <class State>
class receiving_actor : public actor_of<State> {
 public:
  template <class... Args>
  receiving_actor(caf::actor_config& config, transport::transport& source, Args&&... args)
      : actor_of<State>(config, std::forward<Args>(args)...), source_(source) {}

  using actor_of<State>::enqueue;
  void enqueue(caf::mailbox_element_ptr element, caf::execution_unit* host) override {
    actor_of<State>::enqueue(std::move(element), host);
    source_.wake_receiver();
  }

 private:
  transport::transport& source_;
};

}  // namespace troupe::actors::actor
