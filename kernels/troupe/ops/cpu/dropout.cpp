#include "troupe/ops/cpu/kernel_tables.hpp"
#include "troupe/ops/cpu/loops/map_in_blocks.hpp"
#include "troupe/ops/cpu/loops/vector_clones.hpp"
#include "troupe/ops/cpu/philox_blocks.hpp"

namespace troupe::cpu {
namespace {

/// x - x is 0, except for infinity and NaN, where it is NaN.
TROUPE_CLONES void apply_words(const float* x, const std::uint32_t* words, float* y, std::int64_t size,
                               std::uint32_t threshold, float factor) {
  for (std::int64_t i = 0; i < size; ++i) y[i] = words[i] >= threshold ? x[i] * factor : x[i] - x[i];
}

void apply(const tensor& x, const dropout_mask& mask, tensor& y) {
  auto size = x.num_elements();
  parallel_for((size + block_elements - 1) / block_elements, size, [&](std::int64_t index) {
    alignas(64) std::array<float, block_elements> scratch, result;
    alignas(64) std::array<std::uint32_t, block_elements> words;
    auto first = index * block_elements, count = std::min(block_elements, size - first);
    philox_blocks(mask.key, mask.place, static_cast<std::uint32_t>(first / 4), (count + 3) / 4, words.data());
    auto* target = block_to_write(y, first, result);
    apply_words(read_block(x, first, count, scratch), words.data(), target, count, mask.threshold,
                mask.factor);
    write_block(y, first, count, target);
  });
}

}  // namespace

dropout_kernels dropout() { return {.apply = apply}; }

}  // namespace troupe::cpu
