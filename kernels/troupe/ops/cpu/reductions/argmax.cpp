#include "troupe/ops/cpu/reductions/reductions.hpp"

#include "troupe/ops/cpu/loops/map_in_blocks.hpp"
#include "troupe/ops/cpu/loops/vector_clones.hpp"

namespace troupe::cpu {
namespace {

using block_floats = std::array<float, block_elements>;

/// The index of the first match; `size` if there is none.
TROUPE_CLONES std::int32_t first_match(const float* x, float value, std::int32_t size) {
  auto first = size;
  if (size < 32) {
    for (first = 0; first < size - 1 && x[first] != value && x[first] == x[first];) ++first;
    return first;
  }
  for (std::int32_t i = 0; i < size; ++i) {
    auto candidate = ((x[i] == value) | (x[i] != x[i])) != 0 ? i : size;
    first = candidate < first ? candidate : first;
  }
  return first;
}

TROUPE_CLONES void note_matches(const float* x, const float* value, std::int64_t row, std::int64_t* index,
                                std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i)
    index[i] = ((x[i] == value[i]) | (x[i] != x[i])) != 0 ? row : index[i];
}

std::int64_t first_in_long_row(const tensor& x, std::int64_t row, std::int64_t count, float value) {
  alignas(64) block_floats scratch;
  for (std::int64_t first = 0; first < count; first += block_elements) {
    auto size = std::min(block_elements, count - first);
    const auto* values = read_block(x, row * count + first, size, scratch);
    auto at = first_match(values, value, static_cast<std::int32_t>(size));
    if (at < size) return first + at;
  }
  return 0;
}

/// Processes short rows in groups.
void argmax_of_rows(const tensor& x, const reduced_axis& along, const float* largest, std::int64_t* index) {
  auto together = std::max<std::int64_t>(1, block_elements / along.count);
  parallel_for(quotient_up(along.outer, together), x.num_elements(), [&](std::int64_t group) {
    auto row = group * together, rows = std::min(together, along.outer - row);
    if (along.count > block_elements) {
      index[row] = first_in_long_row(x, row, along.count, largest[row]);
      return;
    }
    alignas(64) block_floats scratch;
    const auto* values = read_block(x, row * along.count, rows * along.count, scratch);
    auto size = static_cast<std::int32_t>(along.count);
    for (std::int64_t i = 0; i < rows; ++i)
      index[row + i] = first_match(values + i * along.count, largest[row + i], size);
  });
}

/// Scans from the last row to the first, so that the first match is kept.
void argmax_of_columns(const tensor& x, const reduced_axis& along, const float* largest,
                       std::int64_t* index) {
  auto strips = quotient_up(along.inner, block_elements);
  parallel_for(along.outer * strips, x.num_elements(), [&](std::int64_t task) {
    alignas(64) block_floats scratch;
    auto column = task % strips * block_elements, width = std::min(block_elements, along.inner - column);
    auto outer = task / strips, target = outer * along.inner + column;
    std::fill_n(index + target, width, 0);
    for (auto row = along.count; row-- > 0;) {
      auto first = (outer * along.count + row) * along.inner + column;
      note_matches(read_block(x, first, width, scratch), largest + target, row, index + target, width);
    }
  });
}

}  // namespace

void argmax(const tensor& x, const reduced_axis& along, const tensor& largest, tensor& index) {
  const auto* values = largest.values<float>().data();
  auto* indices = index.values<std::int64_t>().data();
  along.inner == 1 ? argmax_of_rows(x, along, values, indices) : argmax_of_columns(x, along, values, indices);
}

}  // namespace troupe::cpu
