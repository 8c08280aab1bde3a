#pragma once
#include <caf/actor.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/invoke_message_result.hpp>
#include <caf/mailbox_element.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "troupe/actor/actor_counters.hpp"

namespace troupe::actors::actor {

/// An actor that counts its messages, the time of its handlers, and what it sends.
///
///   a message                              counts
///   put into the mailbox                   as one that waits, whoever sends it: also responses, exits, down
///                                          messages, time limits of requests, and delayed messages once due
///   handled, dropped, thrown over          as one in, with the time of its handler
///   skipped (caf::skip)                    as one that waits, until it is handled
///   in the mailbox of an actor that ends   no more
///   put into a counted_actor's mailbox,    as one out of the actor that runs on this thread, if any
///   or into a link
///
/// The time of a handler is that from the end of the message before it, or from when the thread took the
/// actor up: a clock is read once per message. It includes what a handler waits for.
///
/// For CAF 0.17: `consume` and `resume` are its only hooks around a handler.
class counted_actor : public caf::event_based_actor {
 public:
  explicit counted_actor(caf::actor_config& config) : caf::event_based_actor(config) {}

  const std::shared_ptr<actor_counters>& counters() const { return counters_; }

  using caf::event_based_actor::enqueue;
  void enqueue(caf::mailbox_element_ptr element, caf::execution_unit* host) override;
  caf::resumable::resume_result resume(caf::execution_unit* host, std::size_t most) override;
  bool cleanup(caf::error&& reason, caf::execution_unit* host) override;

 protected:
  caf::invoke_message_result consume(caf::mailbox_element& element) override;

 private:
  std::shared_ptr<actor_counters> counters_ = std::make_shared<actor_counters>();
};

/// Those of an actor of this process; null: it is no counted_actor.
std::shared_ptr<actor_counters> counters_of(const caf::actor& one);
std::shared_ptr<actor_counters> counters_of(const caf::strong_actor_ptr& one);
std::shared_ptr<actor_counters> counters_of(caf::event_based_actor* self);

/// The actor that runs on this thread, if it is a counted_actor, sends a message to another process, in a
/// frame with a body of so many bytes.
void count_sent_frame(std::uint64_t size_bytes);

}  // namespace troupe::actors::actor
