#pragma once
#include <caf/actor.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "troupe/actor/counted_actor.hpp"
#include "troupe/link/process_links.hpp"
#include "troupe/link/wire_table.hpp"

namespace troupe::actors::link {

/// Frames that were not delivered, since construction.
struct gate_statistics {
  std::uint64_t old_generation = 0;   ///< of an older generation: dropped
  std::uint64_t old_incarnation = 0;  ///< for an actor of an older incarnation: dropped, requests refused
  std::uint64_t unknown_actor = 0;    ///< for an actor that is not here: dropped, requests refused
  std::uint64_t unknown_sender = 0;   ///< from a rank that is no member of the generation: dropped
  std::uint64_t late_replies = 0;     ///< to requests that were over: dropped
};

/// Delivers control frames to local actors, and replies to those that wait for them. Frames of older
/// generations, and those for an actor of an older incarnation, are dropped and counted. Frames of newer
/// generations are held until this process enters that generation (open), those for an actor of a newer
/// incarnation until it has its name (bind). Thread-safe.
class inbound_gate {
 public:
  /// Bound of held messages; far more than other processes send before this process enters their generation.
  static constexpr std::size_t max_held = 65'536;

  /// Messages to `name` go to `receiver` from now on.
  void bind(const actor::actor_name& name, caf::actor receiver);
  /// Called on the transport's progress thread. Throws decode_error for a body that is no message (unless its
  /// generation is old) and if more than max_held messages are held.
  void deliver(int from_rank, std::uint64_t generation, std::span<const std::byte> body);
  /// Delivers the held frames of `generation`, and from now on those that arrive. Replies go through `links`.
  void open(std::uint64_t generation, std::shared_ptr<process_links> links);
  gate_statistics statistics() const;
  /// Forgets all receivers and the links.
  void close();

 private:
  struct arrived_message {
    int from_rank = 0;
    addressed_message message;
    std::size_t frame_bytes = 0;  ///< size of the frame's body
  };
  struct bound_actor {
    std::uint32_t incarnation = 0;
    caf::actor handle;
    std::shared_ptr<actor::actor_counters> counters;  ///< null: it counts nothing
  };
  void hold(std::uint64_t generation, arrived_message arrived);
  void deliver_held();
  bool try_deliver(const arrived_message& arrived);
  void refuse(const arrived_message& arrived, const std::string& why);

  mutable std::mutex mutex_;
  std::uint64_t generation_ = 0;
  gate_statistics counters_;
  std::shared_ptr<process_links> links_;
  std::map<std::pair<actor::actor_role, std::uint32_t>, bound_actor> receivers_;
  std::multimap<std::uint64_t, arrived_message> held_;  ///< by generation
};

}  // namespace troupe::actors::link
