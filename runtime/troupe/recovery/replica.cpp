#include "troupe/recovery/replica.hpp"

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

std::optional<int> neighbour(int rank, int world_size, int distance) {
  if (world_size < 1 || rank < 0 || rank >= world_size)
    throw_invalid("rank_of_peer_replica", "a rank in [0, " + std::to_string(world_size) + ")",
                  std::to_string(rank));
  if (world_size == 1) return {};
  return (rank + distance) % world_size;
}

}  // namespace

std::optional<int> rank_of_peer_replica(int rank, int world_size) { return neighbour(rank, world_size, 1); }

std::optional<int> rank_replicated_by(int rank, int world_size) {
  return neighbour(rank, world_size, world_size - 1);
}

}  // namespace troupe
