#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "troupe/tensor/device.hpp"

namespace troupe {

class block_charge;

/// Category of memory in the statistics.
enum class memory_category : std::uint8_t { other, parameters, gradients, optimizer, activations };
constexpr std::size_t num_memory_categories = 5;

/// Memory statistics of one device in bytes. Peaks count from the start of the process or the last
/// reset_peak_memory().
struct memory_statistics {
  std::size_t current = 0;                                   ///< held by tensors now
  std::size_t peak = 0;                                      ///< the largest `current` was
  std::size_t cached = 0;                                    ///< freed by tensors and cached for reuse
  std::size_t by_category[num_memory_categories] = {};       ///< the parts of `current`
  std::size_t peak_by_category[num_memory_categories] = {};  ///< each one's own peak
  std::uint64_t num_from_system = 0;                         ///< allocations that the cache could not serve
};

/// Allocates `size_bytes` bytes, aligned to 64, from the device's caching allocator; the block returns to it
/// when the last owner is destroyed. Thread-safe. Throws std::bad_alloc if there is no memory even after
/// releasing the cache, and bad_input if the device does not exist, or the
/// account that this thread charges would exceed its limit (memory_account::set_limit).
std::shared_ptr<void> allocate(std::size_t size_bytes, device target);

/// Sets the category of memory from allocate() that is counted as `other`. Does nothing for memory with
/// another category.
void set_memory_category(const std::shared_ptr<void>& memory, memory_category category);

memory_statistics memory_of(device target);
void reset_peak_memory(device target);
/// Returns cached memory to the system.
void release_cached_memory(device target);

/// While it lives, allocations of this thread are counted as `category`.
class memory_scope {
 public:
  explicit memory_scope(memory_category category);
  ~memory_scope();
  memory_scope(const memory_scope&) = delete;
  memory_scope& operator=(const memory_scope&) = delete;

 private:
  memory_category outer_;
};

/// Charges this thread's memory_account for a block that is not from allocate(), under this thread's
/// category, as long as it lives. Any thread may destroy it.
class memory_charge {
 public:
  explicit memory_charge(std::size_t size_bytes);
  ~memory_charge();
  memory_charge(const memory_charge&) = delete;
  memory_charge& operator=(const memory_charge&) = delete;

 private:
  std::size_t size_bytes_;
  std::unique_ptr<block_charge> charge_;
};

}  // namespace troupe
