#pragma once
#include <caf/mailbox_element.hpp>
#include <utility>

#include "troupe/actor/actor_of.hpp"
#include "troupe/transport/transport.hpp"

namespace troupe {

/// An actor that waits for tensors in the transport (transport::receive_for) instead of its mailbox, and
/// takes them there on its own thread: whoever sends to it wakes it. Detached.
/// `system.spawn<receiving_actor<device_state>, caf::detached>(in, options)`; `in` outlives it.
template <class State>
class receiving_actor : public actor_of<State> {
 public:
  template <class... Args>
  receiving_actor(caf::actor_config& config, transport& in, Args&&... args)
      : actor_of<State>(config, std::forward<Args>(args)...), in_(in) {}

  using actor_of<State>::enqueue;
  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit* host) override {
    actor_of<State>::enqueue(std::move(what), host);
    in_.wake_receiver();
  }

 private:
  transport& in_;
};

}  // namespace troupe
