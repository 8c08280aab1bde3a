#pragma once
#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "troupe/ops/cpu/loops/block_conversion.hpp"
#include "troupe/ops/cpu/loops/parallel.hpp"

namespace troupe::cpu {

// Rows of f32, bf16 and f16 tensors as floats: rows are the last axis.

inline std::int64_t row_size(const tensor& x) { return x.shape()[-1]; }
inline std::int64_t num_rows(const tensor& x) {
  return row_size(x) == 0 ? 0 : x.num_elements() / row_size(x);
}

/// Thread-local scratch memory for `size` floats, one buffer per `slot`; valid until the slot is requested
/// with a larger size.
inline std::span<float> row_scratch(std::size_t slot, std::int64_t size) {
  thread_local std::array<std::vector<float>, 4> memory;
  auto& row = memory.at(slot);
  if (row.size() < static_cast<std::size_t>(size)) row.resize(static_cast<std::size_t>(size));
  return row;
}

/// Rows [first, first + count), in place if they are f32, else converted into the scratch of `slot`.
inline const float* read_rows(const tensor& from, std::int64_t first, std::int64_t count, std::size_t slot) {
  auto size = row_size(from);
  auto scratch = from.dtype() == dtype::f32 ? std::span<float>{} : row_scratch(slot, count * size);
  return read_block(from, first * size, count * size, scratch);
}

/// Calls `write(float*)` with where to write the rows, then converts what it wrote.
template <class Write>
void write_rows(tensor& to, std::int64_t first, std::int64_t count, std::size_t slot, const Write& write) {
  auto size = row_size(to);
  auto scratch = to.dtype() == dtype::f32 ? std::span<float>{} : row_scratch(slot, count * size);
  auto* target = block_to_write(to, first * size, scratch);
  write(target);
  write_block(to, first * size, count * size, target);
}

/// Calls `run(first, count)` for groups of rows of `x`, in parallel on this thread's threads; short rows are
/// grouped to amortise the call.
template <class Run>
void for_each_rows(const tensor& x, const Run& run) {
  constexpr std::int64_t together = 4096;  // elements
  auto size = std::max<std::int64_t>(1, row_size(x)), rows = num_rows(x);
  auto count = std::max<std::int64_t>(1, together / size);
  parallel_for((rows + count - 1) / count, x.num_elements(), [&](std::int64_t index) {
    auto first = index * count;
    run(first, std::min(count, rows - first));
  });
}

}  // namespace troupe::cpu
