#pragma once
#include <cstdint>
#include <vector>

namespace troupe::actors::actor {

/// What an actor has done, and what waits for it. A value that goes over the wire.
struct actor_counts {
  std::uint64_t mailbox_depth = 0;  ///< messages that wait; not the one that is being handled
  /// Age of the oldest of them in seconds, see arrival_marks; 0: none waits. Messages are taken to be handled
  /// in the order of their arrival, which is so but for urgent ones (exit) and those that an actor skips.
  double oldest_s = 0;
  double running_s = 0;            ///< for which the handler that now runs has run; 0: none runs
  std::uint64_t messages_in = 0;   ///< taken from the mailbox, by whatever they were handled or dropped
  std::uint64_t messages_out = 0;  ///< put into mailboxes and links while it ran; delayed ones are not known
  std::uint64_t frame_bytes_in = 0, frame_bytes_out = 0;  ///< of messages from and to other processes
  double handler_s = 0;                                   ///< seconds spent in handlers, in all
  std::vector<std::uint64_t> handler_times;  ///< by bucket (handler_times.hpp), up to the last that is not 0
  bool operator==(const actor_counts&) const = default;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(mailbox_depth, oldest_s, running_s, messages_in, messages_out, frame_bytes_in, frame_bytes_out,
            handler_s, handler_times);
  }
};

/// Adds what an earlier actor has done, not what waited for it.
void add_totals(actor_counts& to, const actor_counts& earlier);

}  // namespace troupe::actors::actor
