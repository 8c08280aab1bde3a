#include "support/cuda_emulation/execution/warp.hpp"

#include <cstring>

#include "support/cuda_emulation/execution/block.hpp"
#include "support/cuda_emulation/execution/fault.hpp"

namespace troupe::emulation {
namespace {

void check_lanes(const warp& of, std::uint32_t mask, const call& by) {
  if (of.alive != of.present) fail(by, "expected all lanes of the warp, got some that have ended");
  if ((mask & of.present) != of.present) fail(by, "expected all lanes of the warp in the mask, got some");
}

}  // namespace

unsigned lane_index() { return running->current->index.x % num_lanes; }

bool is_present(unsigned lane) { return (running->warp_of(*running->current).present >> lane & 1) != 0; }

unsigned lane_of_source(const call& by, unsigned lane) {
  if (lane >= num_lanes || !is_present(lane))
    fail(by, "expected a lane of the warp to read from, got lane " + std::to_string(lane));
  return lane;
}

const warp::exchange& exchange_in_warp(std::uint32_t mask, const call& by, const void* value,
                                       std::size_t size_bytes, void (*complete)(warp::exchange&)) {
  auto& mine = running->warp_of(*running->current);
  check_lanes(mine, mask, by);
  auto& slot = mine.exchanges[mine.generation % 2];
  if (mine.num_arrived == 0)
    slot.by = by;
  else if (!is_same(slot.by, by))
    fail(by, "expected all lanes of the warp in one call, got some in " + to_string(slot.by));
  if (size_bytes > 0) std::memcpy(slot.values + lane_index() * size_bytes, value, size_bytes);
  auto num_present = static_cast<unsigned>(__builtin_popcount(mine.present));
  if (++mine.num_arrived < num_present) {
    running->wait_for(mine.generation, by);
  } else {
    if (complete) complete(slot);
    mine.num_arrived = 0;
    ++mine.generation;
  }
  return slot;
}

}  // namespace troupe::emulation
