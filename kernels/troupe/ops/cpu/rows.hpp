#pragma once
#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "troupe/ops/cpu/block_conversion.hpp"
#include "troupe/ops/cpu/parallel.hpp"

namespace troupe::cpu {

// Rows of f32, bf16 and f16 tensors as floats: rows are the last axis.

inline std::int64_t row_size(const tensor& of) { return of.extents()[-1]; }
inline std::int64_t num_rows(const tensor& of) {
  return row_size(of) == 0 ? 0 : of.num_elements() / row_size(of);
}

/// This thread's memory for `size` floats, one for each small `slot`; it lasts until the slot is asked for
/// more.
inline std::span<float> row_scratch(std::size_t slot, std::int64_t size) {
  thread_local std::array<std::vector<float>, 4> memory;
  auto& row = memory.at(slot);
  if (row.size() < static_cast<std::size_t>(size)) row.resize(static_cast<std::size_t>(size));
  return row;
}

/// Row `row`, in place if it is f32, else converted into the scratch of `slot`.
inline const float* read_row(const tensor& from, std::int64_t row, std::size_t slot) {
  auto size = row_size(from);
  auto scratch = from.type() == dtype::f32 ? std::span<float>{} : row_scratch(slot, size);
  return read_block(from, row * size, size, scratch);
}

/// Calls `write(float*)` with where to write row `row`, then converts what it wrote.
template <class Write>
void write_row(tensor& to, std::int64_t row, std::size_t slot, const Write& write) {
  auto size = row_size(to);
  auto scratch = to.type() == dtype::f32 ? std::span<float>{} : row_scratch(slot, size);
  auto* target = block_to_write(to, row * size, scratch);
  write(target);
  write_block(to, row * size, size, target);
}

/// Calls `run(row)` for each row of `of` on as many threads as are worth it.
template <class Run>
void for_each_row(const tensor& of, const Run& run) {
  parallel_for(num_rows(of), std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, row_size(of))), run);
}

}  // namespace troupe::cpu
