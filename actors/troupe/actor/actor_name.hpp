#pragma once
#include <compare>
#include <cstdint>
#include <string>

namespace troupe::actors::actor {

/// What an actor is for. The numbers go over the wire.
enum class actor_role : std::uint8_t { supervisor = 1, scheduler = 2, device = 3, gatherer = 4 };

/// Names an actor among the processes of a job: "device/3#1".
struct actor_name {
  actor_role role = actor_role::supervisor;
  /// Device: its number in the job. Supervisor, gatherer: the rank of their process. Scheduler: 0.
  std::uint32_t number = 0;
  /// Of its process, see member::incarnation. A process that replaces a lost one has actors of new names.
  std::uint32_t incarnation = 0;
  auto operator<=>(const actor_name&) const = default;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(role, number, incarnation);
  }
};

/// role/number#incarnation
std::string to_string(const actor_name& name);

}  // namespace troupe::actors::actor
