#include "troupe/ops/cuda/kernel_tables.hpp"
#include "troupe/ops/cuda/rows.cuh"
#include "troupe/ops/cuda/total_reduction.hpp"

// Reductions along an axis in parts of a fixed size, whose f32 results are reduced again until one is left: a
// thread block reduces a part of a row, or, if the reduced axis is not the innermost, a thread reduces a part
// of a column.

namespace troupe::cuda {
namespace {

struct larger {
  static constexpr float neutral = -HUGE_VALF;
  __device__ float operator()(float a, float b) const { return b > a || b != b ? b : a; }
};
struct smaller {
  static constexpr float neutral = HUGE_VALF;
  __device__ float operator()(float a, float b) const { return b < a || b != b ? b : a; }
};

constexpr std::int64_t row_part = 16384, column_part = 256;

template <class Combine, class T>
__global__ void reduce_rows_kernel(const T* x, std::int64_t count, float* y) {
  const auto* row = x + blockIdx.y * count;
  auto first = blockIdx.x * row_part, last = min(count, first + row_part);
  float value = Combine::neutral;
  for (auto i = first + threadIdx.x; i < last; i += blockDim.x) value = Combine()(value, as_float(row[i]));
  value = reduce_block<Combine>(value);
  if (threadIdx.x == 0) y[blockIdx.y * gridDim.x + blockIdx.x] = value;
}

/// blockIdx.y counts parts of all outer indices.
template <class Combine, class T>
__global__ void reduce_columns_kernel(const T* x, reduced_axis along, std::int64_t part_rows,
                                      std::int64_t num_parts, float* y) {
  auto column = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (column >= along.inner) return;
  auto outer = blockIdx.y / num_parts, part = blockIdx.y % num_parts;
  auto first = part * part_rows, last = min(along.count, first + part_rows);
  const auto* from = x + outer * along.count * along.inner + column;
  float value = Combine::neutral;
  for (auto i = first; i < last; ++i) value = Combine()(value, as_float(from[i * along.inner]));
  y[blockIdx.y * along.inner + column] = value;
}

/// A grid's extent in y is limited, so outer indices are grouped, and very long columns have longer parts.
constexpr std::int64_t max_in_y = 65535;

std::int64_t part_of(const reduced_axis& along) {
  if (along.inner == 1) return row_part;
  return std::max(column_part, (along.count + max_in_y - 1) / max_in_y);
}

template <class Combine>
void reduce_once(const tensor& x, const reduced_axis& along, std::int64_t num_parts, tensor& y) {
  auto in_y = along.inner == 1 ? 1 : num_parts;  // blocks in y for one outer index
  auto at_once = std::max<std::int64_t>(1, max_in_y / in_y);
  with_floating(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t first = 0; first < along.outer; first += at_once) {
      auto grid_y = static_cast<unsigned>(std::min(at_once, along.outer - first) * in_y);
      const auto* from = elements_of<T>(x) + first * along.count * along.inner;
      auto* to = elements_of<float>(y) + first * num_parts * along.inner;
      if (along.inner == 1)
        launch(x.device(), dim3(num_blocks(num_parts), grid_y), block_threads, reduce_rows_kernel<Combine, T>,
               from, along.count, to);
      else
        launch(x.device(), dim3(blocks_for(along.inner), grid_y), block_threads,
               reduce_columns_kernel<Combine, T>, from, along, part_of(along), num_parts, to);
    }
  });
}

/// [outer, inner] in f32.
template <class Combine>
tensor reduced(tensor x, reduced_axis along) {
  // Rows of one element are columns of one element: a thread for each instead of a block.
  if (along.count == 1) along = {.outer = 1, .count = 1, .inner = along.outer * along.inner};
  do {
    auto part = part_of(along);
    auto num_parts = (along.count + part - 1) / part;
    auto y = tensor::empty({along.outer, num_parts, along.inner}, dtype::f32, x.device());
    reduce_once<Combine>(x, along, num_parts, y);
    x = y;
    along.count = num_parts;
  } while (along.count > 1);
  return x;
}

template <class T>
__global__ void store_kernel(const float* x, float factor, std::int64_t size, T* y) {
  auto i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < size) y[i] = rounded<T>(x[i] * factor);
}

void store(const tensor& x, float factor, tensor& y) {
  with_floating(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch(y.device(), blocks_for(y.num_elements()), block_threads, store_kernel<T>, elements_of<float>(x),
           factor, y.num_elements(), elements_of<T>(y));
  });
}

/// A warp looks through a row or column together for the first match.
template <class T>
__global__ void argmax_kernel(const T* x, reduced_axis along, const float* largest_values,
                              std::int64_t* index) {
  std::int64_t at = blockIdx.x, outer = at / along.inner, column = at % along.inner;
  auto wanted = largest_values[at];
  const auto* from = x + outer * along.count * along.inner + column;
  for (std::int64_t first = 0; first < along.count; first += warp_threads) {
    auto i = first + threadIdx.x;
    auto value = i < along.count ? as_float(from[i * along.inner]) : 0;
    auto matches = __ballot_sync(~0U, i < along.count && (value == wanted || value != value));
    if (matches == 0) continue;
    if (threadIdx.x == 0) index[at] = first + __ffs(static_cast<int>(matches)) - 1;
    return;
  }
}

void argmax(const tensor& x, const reduced_axis& along, const tensor& largest_values, tensor& index) {
  with_floating(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch(x.device(), num_blocks(index.num_elements()), warp_threads, argmax_kernel<T>, elements_of<T>(x),
           along, elements_of<float>(largest_values), elements_of<std::int64_t>(index));
  });
}

template <class Combine>
void extreme(const tensor& x, const reduced_axis& along, tensor& y) {
  store(reduced<Combine>(x, along), 1, y);
}

}  // namespace

reduction_kernels reduction() {
  return {.sum = [](const tensor& x, const reduced_axis& along, float factor,
                    tensor& y) { store(reduced<cuda::sum>(x, along), factor, y); },
          .max = extreme<larger>,
          .min = extreme<smaller>,
          .argmax = argmax,
          .total_sum = total_sum,
          .sum_of_squares = sum_of_squares,
          .all_finite = all_finite,
          .scale_all = scale_all};
}

}  // namespace troupe::cuda
