#pragma once
#include <optional>

namespace troupe {

/// The rank whose memory holds a second copy of `rank`'s parts: its right neighbour in the ring. None in a
/// world of one. Throws std::invalid_argument for a rank outside [0, world_size).
std::optional<int> rank_of_peer_replica(int rank, int world_size);

/// The reverse: whose parts `rank` keeps a second copy of.
std::optional<int> rank_replicated_by(int rank, int world_size);

}  // namespace troupe
