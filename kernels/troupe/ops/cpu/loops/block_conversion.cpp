#include "troupe/ops/cpu/loops/block_conversion.hpp"

#include <algorithm>
#include <bit>

#include "troupe/ops/cpu/loops/map_in_blocks.hpp"
#include "troupe/ops/cpu/loops/vector_clones.hpp"

namespace troupe::cpu {
namespace {

void copy(const float* from, float* to, std::int64_t size) { std::copy_n(from, size, to); }

}  // namespace

TROUPE_CLONES void to_float(const bfloat16* from, float* to, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) to[i] = static_cast<float>(from[i]);
}

TROUPE_CLONES void to_float(const float16* from, float* to, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) to[i] = static_cast<float>(from[i]);
}

// The same as bfloat16's constructor. Selection and narrowing are separate loops; in one loop GCC would
// narrow all three candidates before the selection.
TROUPE_CLONES void from_float(const float* from, bfloat16* to, std::int64_t size) {
  constexpr std::int64_t at_once = 256;
  alignas(64) std::uint32_t words[at_once];
  for (std::int64_t first = 0; first < size; first += at_once) {
    auto count = std::min(at_once, size - first);
    for (std::int64_t i = 0; i < count; ++i) {
      auto word = std::bit_cast<std::uint32_t>(from[first + i]);
      auto rounded = word + 0x7fff + ((word >> 16) & 1), quiet = word | 0x400000;
      words[i] = ((word & 0x7fffffff) > 0x7f800000 ? quiet : rounded) >> 16;
    }
    for (std::int64_t i = 0; i < count; ++i) to[first + i].bits = static_cast<std::uint16_t>(words[i]);
  }
}

TROUPE_CLONES void from_float(const float* from, float16* to, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) to[i] = float16(from[i]);
}

const float* read_block(const tensor& from, std::int64_t first, std::int64_t count,
                        std::span<float> scratch) {
  auto offset = static_cast<std::size_t>(first);
  if (from.dtype() == dtype::f32) return from.values<float>().data() + offset;
  if (from.dtype() == dtype::bf16)
    to_float(from.values<bfloat16>().data() + offset, scratch.data(), count);
  else
    to_float(from.values<float16>().data() + offset, scratch.data(), count);
  return scratch.data();
}

float* block_to_write(tensor& to, std::int64_t first, std::span<float> scratch) {
  return to.dtype() == dtype::f32 ? to.values<float>().data() + first : scratch.data();
}

void write_block(tensor& to, std::int64_t first, std::int64_t count, const float* written) {
  if (to.dtype() == dtype::bf16) from_float(written, to.values<bfloat16>().data() + first, count);
  if (to.dtype() == dtype::f16) from_float(written, to.values<float16>().data() + first, count);
}

tensor float_copy(const tensor& x) {
  if (x.dtype() == dtype::f32) return x;
  auto copied = tensor::empty(x.shape());
  map_in_blocks(copy, copied, x);
  return copied;
}

void store_floats(const tensor& from, tensor& to) { map_in_blocks(copy, to, from); }

}  // namespace troupe::cpu
