#include "troupe/ops/cpu/product/packed_product.hpp"

#include <algorithm>

#include "troupe/ops/cpu/product/default_rounding.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::cpu {
namespace {

/// Columns of B that are packed at once: with 256 along the inner axis, 1 MiB.
constexpr std::int64_t columns_at_once = 1024;
/// Panels of A that are packed at once, which stay in the L2 cache.
constexpr std::int64_t row_panels_at_once = 18;
/// Columns that are read at once, so that 16-bit elements stay in the L2 cache between widening and packing.
constexpr std::int64_t read_at_once = 128;
/// With at most so many rows, to copy B into panels would take longer than to multiply: where columns of B
/// are contiguous, and where its rows are.
constexpr std::int64_t few_rows = 8, few_rows_by_lines = 16;
/// Columns of B that few rows are multiplied with before the next block of the inner axis: so many lines that
/// memory is read in long runs along the inner axis, or along the columns.
constexpr std::int64_t few_columns = 16, line_columns = 1024;

std::int64_t ceil_of(std::int64_t count, std::int64_t size) { return (count + size - 1) / size * size; }

block_target target_of(const packed_product& product, std::int64_t row, std::int64_t column,
                       std::int64_t first_inner, std::int64_t inner) {
  return product.c.from(row, column).of_block(first_inner == 0, first_inner + inner == product.inner);
}

/// All of A's rows, [inner, rows]: where rows lie a multiple of 4 KiB apart, they share one set of the cache
/// with each other and with the columns of B.
void pack_few_rows(const packed_product& product, const product_part& part, float* scratch, float* to) {
  for (std::int64_t k = 0; k < product.inner; k += inner_block) {
    auto inner = std::min(inner_block, product.inner - k);
    auto block = product.a.read({part.first_row, part.rows, k, inner}, scratch);
    for (std::int64_t i = 0; i < inner; ++i)
      for (std::int64_t row = 0; row < part.rows; ++row)
        *to++ = block.elements[row * block.lane_step + i * block.inner_step];
  }
}

void multiply_few(const packed_product& product, const product_part& part, const product_loops& loops) {
  auto at_once = std::min(part.columns, product.b.inner_is_contiguous() ? few_columns : line_columns);
  auto scratch_size = inner_block * std::max(part.rows * product.a.scratch_per_element(),
                                             at_once * product.b.scratch_per_element());
  auto memory = tensor::empty({part.rows * product.inner + scratch_size});
  auto *a = memory.values<float>().data(), *scratch = a + part.rows * product.inner;
  pack_few_rows(product, part, scratch, a);
  for (std::int64_t column = 0; column < part.columns; column += at_once)
    for (std::int64_t k = 0; k < product.inner; k += inner_block) {
      auto inner = std::min(inner_block, product.inner - k);
      auto first = part.first_column + column, columns = std::min(at_once, part.columns - column);
      loops.multiply_few_rows({a + k * part.rows, part.rows, inner, 1, part.rows},
                              product.b.read({first, columns, k, inner}, scratch),
                              target_of(product, part.first_row, first, k, inner));
    }
}

/// Panels of A and B, and elements that are read before they are packed.
struct panel_buffers {
  tensor memory;
  float *a, *b, *read;

  panel_buffers(const packed_product& product, const product_part& part, const product_loops& loops) {
    auto inner = std::min(product.inner, inner_block);
    auto rows = std::min(part.rows, row_panels_at_once * loops.panel_rows),
         columns = std::min(part.columns, columns_at_once);
    auto a_size = ceil_of(packed_size(rows, loops.panel_rows, inner), 16),
         b_size = ceil_of(packed_size(columns, loops.panel_columns, inner), 16);
    auto read_size = std::max(rows * product.a.scratch_per_element(),
                              std::min(columns, read_at_once) * product.b.scratch_per_element()) *
                     inner;
    memory = tensor::empty({a_size + b_size + read_size});
    a = memory.values<float>().data();
    b = a + a_size;
    read = b + b_size;
  }
};

void pack_columns(const packed_product& product, const operand_range& range, const panel_buffers& buffers,
                  const product_loops& loops) {
  auto* to = buffers.b;
  for (std::int64_t done = 0; done < range.lanes; done += read_at_once) {
    auto part = range;
    part.first_lane += done;
    part.lanes = std::min(read_at_once, range.lanes - done);
    loops.pack_columns(product.b.read(part, buffers.read), to);
    to += packed_size(part.lanes, loops.panel_columns, range.inner);
  }
}

void multiply_packed(const packed_product& product, const product_part& part, const product_loops& loops) {
  panel_buffers buffers(product, part, loops);
  const auto rows_at_once = row_panels_at_once * loops.panel_rows;
  for (std::int64_t column = 0; column < part.columns; column += columns_at_once) {
    auto first_column = part.first_column + column;
    auto columns = std::min(columns_at_once, part.columns - column);
    for (std::int64_t k = 0; k < product.inner; k += inner_block) {
      auto inner = std::min(inner_block, product.inner - k);
      pack_columns(product, {first_column, columns, k, inner}, buffers, loops);
      for (std::int64_t row = 0; row < part.rows; row += rows_at_once) {
        auto first_row = part.first_row + row, rows = std::min(rows_at_once, part.rows - row);
        loops.pack_rows(product.a.read({first_row, rows, k, inner}, buffers.read), buffers.a);
        loops.multiply_packed({buffers.a, buffers.b, rows, columns, inner},
                              target_of(product, first_row, first_column, k, inner));
      }
    }
  }
}

}  // namespace

void multiply_part(const packed_product& product, const product_part& part, const product_loops& loops) {
  default_rounding scope;
  if (part.rows <= (product.b.inner_is_contiguous() ? few_rows : few_rows_by_lines))
    multiply_few(product, part, loops);
  else
    multiply_packed(product, part, loops);
}

product_part part_of(const packed_product& product, std::int64_t index, std::int64_t count) {
  auto by_columns = product.columns > product.rows;
  auto size = by_columns ? product.columns : product.rows;
  // Whole panels, of every instruction set.
  constexpr std::int64_t step = 32;
  auto steps = (size + step - 1) / step;
  auto begin = std::min(size, steps * index / count * step),
       end = std::min(size, steps * (index + 1) / count * step);
  if (by_columns) return {0, product.rows, begin, end - begin};
  return {begin, end - begin, 0, product.columns};
}

}  // namespace troupe::cpu
