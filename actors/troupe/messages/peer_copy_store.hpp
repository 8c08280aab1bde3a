#pragma once
#include <caf/actor.hpp>
#include <cstdint>

#include "troupe/actor/message_storage.hpp"
#include "troupe/layout/part_id.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::actors::messages {

/// Supervisor -> peer_copy_store: a generation begins, restored from `step`. Copies of later steps are rolled
/// back and dropped.
struct store_generation {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  caf::actor scheduler;
};

/// Transport -> peer_copy_store: the copy of a part of a peer.
struct replica_arrived {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  layout::part_id part;
  tensor packed;
};

/// Supervisor -> peer_copy_store, a request: the copy of a part of a peer. Reply: stage_copy.
struct get_replica {
  std::uint64_t step = 0;
  layout::part_id part;
};

}  // namespace troupe::actors::messages

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::store_generation)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::replica_arrived)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::get_replica)
