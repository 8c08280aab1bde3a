#pragma once
#include <caf/actor.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>

#include "troupe/link/wire_table.hpp"

namespace troupe {

/// Turns control frames into local sends, generation by generation: frames of an older generation are dropped
/// and counted, those of a newer one held until this node gets there. Thread-safe.
class inbound_gate {
 public:
  /// Messages of a generation to come that are held at most; far more than the others send before this node
  /// is there too.
  static constexpr std::size_t most_held = 65'536;

  /// Whoever is known by `name` from now on.
  void bind(const actor_name& name, caf::actor receiver);
  /// From the transport's progress thread. Throws decode_error for a body that is no message, unless it is
  /// dropped, and for more than most_held.
  void deliver(std::uint64_t generation, std::span<const std::byte> body);
  /// Frames of `generation` pass from now on, those that were held first.
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
