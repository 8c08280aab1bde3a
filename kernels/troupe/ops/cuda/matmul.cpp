#include "troupe/ops/cuda/families.hpp"
#include "troupe/ops/cuda/matrix_product.hpp"

namespace troupe::cuda {
namespace {

void multiply(const tensor& a, const tensor& b, tensor& c, gradient_mode mode,
              const matmul_options& options) {
  auto rows = c.extents()[-2], columns = c.extents()[-1];
  std::int64_t batch = 1;
  for (int axis = 0; axis < c.extents().rank() - 2; ++axis) batch *= c.extents()[axis];
  matrix_product({.rows = rows,
                  .columns = columns,
                  .inner = b.extents()[options.transpose_b ? -1 : -2],
                  .batch = batch,
                  .left_is_transposed = options.transpose_a,
                  .right_is_transposed = options.transpose_b,
                  .right_is_shared = b.extents().rank() == 2,
                  .accumulate = mode == gradient_mode::accumulate},
                 a, b, {}, c);
}

}  // namespace

matmul_kernels matmul() { return {.multiply = multiply}; }

}  // namespace troupe::cuda
