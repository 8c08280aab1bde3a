#pragma once
#include <compare>
#include <cstdint>
#include <string>

namespace troupe::actors::actor {

/// What an actor does for its supervisor, in the order in which children are started. The numbers go over the
/// wire.
enum class child_role : std::uint8_t {
  loader = 0,
  peer_copy_store = 1,
  disk = 2,
  snapshot_writer = 3,
  stage = 4,
  device = 5,
  scheduler = 6,
  gatherer = 7,
  inspector = 8
};

/// Names an actor among the children of one supervisor, however often it is started.
struct child_id {
  child_role role = child_role::device;
  std::int32_t number = 0;   ///< stage or device: number in the job; else 0
  std::int32_t replica = 0;  ///< stage: that of its lane; else 0
  std::int32_t slice = 0;    ///< the same
  auto operator<=>(const child_id&) const = default;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(role, number, replica, slice);
  }
};

/// "device 1", "stage 2 of replica 1 slice 3", "the loader"; "an actor" if this version has no such role.
std::string to_string(const child_id& one);

}  // namespace troupe::actors::actor
