#include "troupe/ops/cuda/product/tiled_product.hpp"

#include "troupe/ops/cuda/loops/floating_values.cuh"
#include "troupe/ops/cuda/loops/launch.cuh"

// Tiled matrix product: a thread block computes a tile of 64 x 64 elements of C. It iterates over the inner
// axis in steps of 16 and copies the operands to shared memory as f32. Each of 256 threads computes 4 x 4
// elements.

namespace troupe::cuda {
namespace {

constexpr int tile = 64, depth = 16, per_thread = 4;
constexpr int threads_across = tile / per_thread;
static_assert(threads_across * threads_across == block_threads);

/// The epilogue: accumulation, bias and ReLU.
struct epilogue {
  floating_values bias;
  bool accumulate, relu;

  template <class To>
  __device__ void store(float sum, std::int64_t column, To& to) const {
    auto value = (accumulate ? as_float(to) + sum : sum) + bias.at(column, 0);
    to = rounded<To>(relu && value <= 0 ? 0 : value);
  }
};

/// One pair's operand, as op(A) [rows, inner] or as the transposed op(B) [columns, inner]: how far neighbours
/// along either axis lie apart.
template <class T>
struct product_operand {
  const T* first;
  std::int64_t along_rows, along_inner;
};

/// to[k][i] = the operand at (first_row + i, first_inner + k); 0 behind the ends. Threads follow each other
/// along the axis along which elements do.
template <class T>
__device__ void load_tile(float (&to)[depth][tile + 1], const product_operand<T>& from,
                          std::int64_t first_row, std::int64_t rows, std::int64_t first_inner,
                          std::int64_t inner) {
  for (int at = static_cast<int>(threadIdx.x); at < tile * depth; at += static_cast<int>(block_threads)) {
    auto i = from.along_inner == 1 ? at / depth : at % tile;
    auto k = from.along_inner == 1 ? at % depth : at / tile;
    auto is_there = first_row + i < rows && first_inner + k < inner;
    to[k][i] =
        is_there
            ? as_float(from.first[(first_row + i) * from.along_rows + (first_inner + k) * from.along_inner])
            : 0;
  }
}

/// Rows 4 row_of_thread() to + 3 of the tile, and columns column_of_thread() + 16 j, are this thread's.
__device__ int row_of_thread() { return static_cast<int>(threadIdx.x) / threads_across * per_thread; }
__device__ int column_of_thread() { return static_cast<int>(threadIdx.x) % threads_across; }

__device__ void add_products(const float (&left)[depth][tile + 1], const float (&right)[depth][tile + 1],
                             float (&sums)[per_thread][per_thread]) {
#pragma unroll 4
  for (int k = 0; k < depth; ++k)
#pragma unroll
    for (int i = 0; i < per_thread; ++i)
#pragma unroll
      for (int j = 0; j < per_thread; ++j)
        sums[i][j] += left[k][row_of_thread() + i] * right[k][column_of_thread() + threads_across * j];
}

/// blockIdx.x counts tiles of columns, then of rows, then pairs.
template <class T, class To>
__global__ void __launch_bounds__(block_threads)
    product_kernel(matrix_product_shape product, const T* a, const T* b, epilogue then, To* c) {
  __shared__ float left[depth][tile + 1], right[depth][tile + 1];
  auto across = (product.columns + tile - 1) / tile, down = (product.rows + tile - 1) / tile;
  auto block = static_cast<std::int64_t>(blockIdx.x);
  auto first_column = block % across * tile, first_row = block / across % down * tile;
  auto pair = block / across / down;
  product_operand<T> lefts{a + pair * product.rows * product.inner,
                           product.left_is_transposed ? 1 : product.inner,
                           product.left_is_transposed ? product.rows : 1};
  product_operand<T> rights{b + (product.right_is_shared ? 0 : pair * product.inner * product.columns),
                            product.right_is_transposed ? product.inner : 1,
                            product.right_is_transposed ? 1 : product.columns};
  float sums[per_thread][per_thread] = {};
  for (std::int64_t k = 0; k < product.inner; k += depth) {
    load_tile(left, lefts, first_row, product.rows, k, product.inner);
    load_tile(right, rights, first_column, product.columns, k, product.inner);
    __syncthreads();
    add_products(left, right, sums);
    __syncthreads();  // all have read what the next step overwrites
  }
#pragma unroll
  for (int i = 0; i < per_thread; ++i)
#pragma unroll
    for (int j = 0; j < per_thread; ++j) {
      auto row = first_row + row_of_thread() + i,
           column = first_column + column_of_thread() + threads_across * j;
      if (row >= product.rows || column >= product.columns) continue;
      then.store(sums[i][j], column, c[(pair * product.rows + row) * product.columns + column]);
    }
}

template <class To>
__global__ void epilogue_kernel(std::int64_t count, std::int64_t columns, const float* product, epilogue then,
                                To* c) {
  auto i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) then.store(product[i], i % columns, c[i]);
}

epilogue epilogue_of(const matrix_product_shape& product, const tensor& bias) {
  return {floating_values(bias), product.accumulate, product.relu};
}

}  // namespace

void tiled_product(const matrix_product_shape& product, const tensor& a, const tensor& b, const tensor& bias,
                   tensor& c) {
  auto tiles = [](std::int64_t extent) { return (extent + tile - 1) / tile; };
  auto blocks = product.batch * tiles(product.rows) * tiles(product.columns);
  with_floating(a.dtype(), [&](auto from) {
    with_floating(c.dtype(), [&](auto to) {
      using T = decltype(from);
      using To = decltype(to);
      launch(c.device(), num_blocks(blocks), block_threads, product_kernel<T, To>, product, elements_of<T>(a),
             elements_of<T>(b), epilogue_of(product, bias), elements_of<To>(c));
    });
  });
}

void product_epilogue(const matrix_product_shape& extents, const tensor& product, const tensor& bias,
                      tensor& c) {
  auto count = c.num_elements();
  with_floating(c.dtype(), [&](auto to) {
    using To = decltype(to);
    launch(c.device(), blocks_for(count), block_threads, epilogue_kernel<To>, count, extents.columns,
           elements_of<float>(product), epilogue_of(extents, bias), elements_of<To>(c));
  });
}

}  // namespace troupe::cuda
