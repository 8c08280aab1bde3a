#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "troupe/ops/adam_step.hpp"
#include "troupe/ops/cpu/loops/block_conversion.hpp"

namespace troupe::cpu {

/// Elements of a weight per block: enough for one task of a thread, few enough that new weights are still in
/// the cache when they are rounded.
constexpr std::int64_t step_block_elements = 16384;

/// Calls `run(first, count)` for the blocks of a tensor of `size` elements.
template <class Run>
void for_each_step_block(std::int64_t size, const Run& run) {
  for (std::int64_t first = 0; first < size; first += step_block_elements)
    run(first, std::min(step_block_elements, size - first));
}

/// The optional low-precision copy of a weight.
class rounded_copy {
 public:
  explicit rounded_copy(tensor to) {
    if (to.defined() && to.dtype() == dtype::bf16) bf16_ = to.values<bfloat16>().data();
    if (to.defined() && to.dtype() == dtype::f16) f16_ = to.values<float16>().data();
  }
  /// The copy from element `first` on.
  rounded_copy from(std::int64_t first) const {
    auto result = *this;
    if (bf16_) result.bf16_ += first;
    if (f16_) result.f16_ += first;
    return result;
  }
  void write(const float* weight, std::int64_t count) const {
    if (bf16_) from_float(weight, bf16_, count);
    if (f16_) from_float(weight, f16_, count);
  }

 private:
  bfloat16* bf16_ = nullptr;
  float16* f16_ = nullptr;
};

/// One block of one adam_slot.
struct adam_block {
  std::size_t slot;
  float* w;
  const float* g;
  float* m;
  float* v;
  rounded_copy low;
  std::int64_t size;
};

/// The total number of elements of the blocks.
template <class Block>
std::int64_t elements_of(std::span<const Block> blocks) {
  std::int64_t sum = 0;
  for (const auto& block : blocks) sum += block.size;
  return sum;
}

/// The blocks of all slots, in order, in thread-local memory that is valid until the thread's next call.
std::span<const adam_block> blocks_of(std::span<const adam_slot> slots);

}  // namespace troupe::cpu
