#pragma once
#include <compare>
#include <cstdint>
#include <string>

namespace troupe {

/// What an actor is for. The numbers go over the wire.
enum class actor_role : std::uint8_t { supervisor = 1, scheduler = 2, device = 3, gatherer = 4 };

/// Names an actor within its node: its role and its number among the actors of that role ("device/3").
struct actor_name {
  actor_role role = actor_role::supervisor;
  std::uint32_t index = 0;
  auto operator<=>(const actor_name&) const = default;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(role, index);
  }
};

std::string to_string(const actor_name& name);

}  // namespace troupe
