#pragma once
#include <caf/actor.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>

#include "troupe/link/wire_table.hpp"

namespace troupe {

/// Delivers control frames to local actors. Frames of older generations are dropped and counted; frames of
/// newer generations are held until this node enters that generation (open). Thread-safe.
class inbound_gate {
 public:
  /// Bound of held messages; far more than other nodes send before this node enters their generation.
  static constexpr std::size_t max_held = 65'536;

  /// Messages to `name` go to `receiver` from now on.
  void bind(const actor_name& name, caf::actor receiver);
  /// Called on the transport's progress thread. Throws decode_error for a body that is no message (unless its
  /// generation is old) and if more than max_held messages are held.
  void deliver(std::uint64_t generation, std::span<const std::byte> body);
  /// Delivers the held frames of `generation`, and from now on those that arrive.
  void open(std::uint64_t generation);
  std::uint64_t num_stale() const;
  /// Forgets all receivers.
  void close();

 private:
  void send_on(addressed_message message);

  mutable std::mutex mutex_;
  std::uint64_t generation_ = 0;
  std::uint64_t num_stale_ = 0;
  std::map<actor_name, caf::actor> receivers_;
  std::multimap<std::uint64_t, addressed_message> held_;
};

}  // namespace troupe
