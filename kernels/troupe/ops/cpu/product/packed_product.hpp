#pragma once
#include "troupe/ops/cpu/product/product_loops.hpp"
#include "troupe/ops/cpu/product/product_operand.hpp"

namespace troupe::cpu {

/// C = A B of f32, or C += A B; then bias and ReLU as in block_target. Each element is, with S_n the chain of
/// the n-th inner_block of the inner axis: ((C + S_0) + S_1) + ... + bias. Its bits depend on nothing else:
/// not on the number of rows and columns, on threads or on the instruction set.
struct packed_product {
  product_operand a, b;
  std::int64_t rows = 0, columns = 0, inner = 0;
  block_target c;
};

/// The rows and columns of C that one thread computes.
struct product_part {
  std::int64_t first_row = 0, rows = 0;
  std::int64_t first_column = 0, columns = 0;
};

/// Computes a part of C on the calling thread. No extent is 0.
void multiply_part(const packed_product& product, const product_part& part,
                   const product_loops& loops = fastest_product_loops());

/// Part `index` of `count`, nearly equal ones; some may be empty.
product_part part_of(const packed_product& product, std::int64_t index, std::int64_t count);

}  // namespace troupe::cpu
