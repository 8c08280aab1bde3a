#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "troupe/tensor/device.hpp"

namespace troupe {

/// What memory is for, in the statistics.
enum class memory_category : std::uint8_t { other, parameters, gradients, optimizer, activations };
constexpr std::size_t num_memory_categories = 5;

/// Of one device, in bytes, since the process began or `reset_peak_memory`.
struct memory_statistics {
  std::size_t current = 0;                                   ///< held by tensors
  std::size_t peak = 0;                                      ///< the most that `current` was
  std::size_t cached = 0;                                    ///< freed by tensors and kept for the next ones
  std::size_t by_category[num_memory_categories] = {};       ///< of `current`
  std::size_t peak_by_category[num_memory_categories] = {};  ///< each one's own
  std::uint64_t num_from_system = 0;                         ///< allocations that the cache could not serve
};

/// Memory for `size_bytes` bytes, aligned to 64, given back to a cache of the device when the last owner
/// goes: a training step takes and returns the same sizes again and again. Any thread may allocate and
/// release. Throws std::bad_alloc, after the cache was emptied in vain, and bad_input for a device that is
/// not there, with what is missing.
std::shared_ptr<void> allocate(std::size_t size_bytes, device where);

/// Of memory that `allocate` gave, counted as `other` so far: it counts as `category` from now on. All else
/// is left as it is.
void count_as(const std::shared_ptr<void>& memory, memory_category category);

memory_statistics memory_of(device where);
void reset_peak_memory(device where);
/// Gives what is cached back to the system.
void release_cached_memory(device where);

/// What this thread allocates while it lives counts as `category`.
class memory_scope {
 public:
  explicit memory_scope(memory_category category);
  ~memory_scope();
  memory_scope(const memory_scope&) = delete;
  memory_scope& operator=(const memory_scope&) = delete;

 private:
  memory_category outer_;
};

}  // namespace troupe
