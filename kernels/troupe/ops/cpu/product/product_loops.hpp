#pragma once
#include <cstdint>
#include <span>

#include "troupe/ops/cpu/product/block_product.hpp"
#include "troupe/ops/cpu/product/product_operand.hpp"

namespace troupe::cpu {

/// The inner axis is cut at multiples of this. Within a block, each element of C is a chain of fused
/// multiply-adds that begins with +0, in ascending order; the sums of blocks are added in ascending order.
constexpr std::int64_t inner_block = 256;

/// Where the sums of one block go: C = sums, or C += sums with `accumulate`. Then a bias, one for each column
/// or one for each row, is added, unless it is null. Then C = C <= 0 ? 0 : C with `relu`.
struct block_target {
  float* c = nullptr;
  std::int64_t stride = 0;  ///< between rows of C, in elements
  const float* column_bias = nullptr;
  const float* row_bias = nullptr;
  bool accumulate = false;
  bool relu = false;

  /// The same from a row and a column on.
  block_target from(std::int64_t row, std::int64_t column) const {
    auto part = *this;
    part.c += row * stride + column;
    if (column_bias) part.column_bias += column;
    if (row_bias) part.row_bias += row;
    return part;
  }
  /// For one block of the inner axis: only the first may replace C, only the last is followed by bias and
  /// ReLU.
  block_target of_block(bool is_first, bool is_last) const {
    auto part = *this;
    part.accumulate = accumulate || !is_first;
    if (!is_last) part.column_bias = part.row_bias = nullptr;
    part.relu = relu && is_last;
    return part;
  }
};

/// Panels of `rows` rows of A and of `columns` columns of B, as the packing loops leave them.
struct packed_block {
  const float *a = nullptr, *b = nullptr;
  std::int64_t rows = 0, columns = 0, inner = 0;
};

/// Lanes of a panel that follow each other in memory: those from `lane` on, up to the next run's.
struct lane_run {
  std::int64_t lane = 0, offset = 0;
};

/// A panel of B that is read where it lies: element (k, lane) is at elements[taps[k] + run.offset + lane -
/// run.lane].
struct gathered_panel {
  const float* elements = nullptr;
  const std::int64_t* taps = nullptr;
  std::int64_t inner = 0;
  std::span<const lane_run> runs;
};

/// Elements that follow each other in memory and along the inner axis.
struct element_run {
  std::int64_t first = 0, size = 0;
};

/// Rows of A that are read where they lie: row r consists of rows[r][run.first + i] for each run, one after
/// the other. B is in panels.
struct gathered_block {
  std::span<const float* const> rows;
  std::span<const element_run> runs;
  const float* b = nullptr;
  std::int64_t columns = 0, inner = 0;
};

/// The loops of a product, compiled for one instruction set. All sets give the same bits. No extent is 0, and
/// but for multiply_block none along the inner axis is larger than inner_block.
struct product_loops {
  std::int64_t panel_rows;     ///< most rows in a panel of A
  std::int64_t panel_columns;  ///< columns in a panel of B
  /// Copies a block of A into panels; `to` has room for packed_size(lanes, panel_rows, inner).
  void (*pack_rows)(const strided_block& from, float* to);
  /// Copies a block of B into panels; missing columns of the last panel become zeros.
  void (*pack_columns)(const strided_block& from, float* to);
  /// Copies one panel. Whole vectors are read from the beginning of each run on: what is too much is replaced
  /// by the next run or line.
  void (*pack_gathered)(const gathered_panel& from, float* to);
  void (*multiply_packed)(const packed_block& block, const block_target& to);
  void (*multiply_gathered)(const gathered_block& block, const block_target& to);
  /// The product of a few rows of A, without packing.
  void (*multiply_few_rows)(const strided_block& a, const strided_block& b, const block_target& to);
  /// block_product.
  void (*multiply_block)(const block_product_shape& product, const float* a, const float* b, float* c);
};

/// Floats between panels, so that equal places in neighbouring panels do not share a set of the cache. At
/// least the columns of a panel: packing stores whole vectors, also past the end.
constexpr std::int64_t panel_gap = 32;

/// Floats that panels of at most `panel` lanes take.
constexpr std::int64_t packed_size(std::int64_t lanes, std::int64_t panel, std::int64_t inner) {
  auto panels = (lanes + panel - 1) / panel;
  return panels * (panel * inner + panel_gap);
}

/// std::fma only, for machines without the instructions.
const product_loops& plain_product_loops();
#if defined(__x86_64__)
const product_loops& avx2_product_loops();
const product_loops& avx512_product_loops();
#endif

/// The fastest that this processor can run.
const product_loops& fastest_product_loops();

}  // namespace troupe::cpu
