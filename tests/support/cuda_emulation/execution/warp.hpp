#pragma once
#include <cstddef>
#include <cstdint>

#include "support/cuda_emulation/execution/call.hpp"

namespace troupe::emulation {

constexpr unsigned num_lanes = 32;
constexpr std::uint32_t all_lanes = ~0U;

/// 32 threads of a block, or fewer at its end, which exchange values.
struct warp {
  static constexpr std::size_t most_bytes = 48;  ///< most bytes that a lane publishes
  static constexpr std::size_t result_floats = 128;

  /// The data that lanes exchange in one call. Two are used in turn: a lane may be in the next call while
  /// others still read the data of this one.
  struct exchange {
    alignas(16) std::byte values[num_lanes * most_bytes];
    float result[result_floats];  ///< what `complete` computes
    call by;
  };

  std::uint32_t present = 0, alive = 0;  ///< bit i: lane i exists, has not ended
  unsigned num_arrived = 0, generation = 0;
  exchange exchanges[2];
};

/// Publishes `size_bytes` of the current thread and waits until every lane of its warp has done so in the
/// same call. Lane i's bytes are then at `values` + i * size_bytes. `complete` is called once, by the last
/// lane that arrives, before the others continue. Fails unless `mask` names every lane, none has ended, and
/// all are in the same call.
const warp::exchange& exchange_in_warp(std::uint32_t mask, const call& by, const void* value,
                                       std::size_t size_bytes, void (*complete)(warp::exchange&) = nullptr);

/// The lane of the current thread.
unsigned lane_index();
/// Whether the current thread's warp has this lane: the last of a block may have fewer than 32.
bool is_present(unsigned lane);
/// `lane`, if it is present. Fails otherwise, since CUDA leaves the received value undefined.
unsigned lane_of_source(const call& by, unsigned lane);

}  // namespace troupe::emulation
