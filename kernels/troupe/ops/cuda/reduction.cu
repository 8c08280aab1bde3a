#include <cmath>

#include "troupe/ops/cuda/kernel_tables.hpp"
#include "troupe/ops/cuda/loops/column_parts.cuh"
#include "troupe/ops/cuda/loops/rows.cuh"
#include "troupe/ops/cuda/reductions/reductions.hpp"

// Reductions along an axis in parts, whose f32 results are reduced again until one is left.

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

/// Results times `factor`, rounded to the dtype of `y`.
struct scaled_output {
  scaled_output(tensor& to, float scale) : y(to.bytes().data()), type(to.dtype()), factor(scale) {}

  __device__ void write(std::int64_t index, float value) const {
    value *= factor;
    if (type == dtype::f32) static_cast<float*>(y)[index] = value;
    if (type == dtype::bf16) static_cast<bfloat16*>(y)[index] = rounded<bfloat16>(value);
    if (type == dtype::f16) static_cast<float16*>(y)[index] = rounded<float16>(value);
  }

  void* y;
  dtype type;
  float factor;
};

/// Combines value 8 L + i of each lane L into that of lane 0, in the order of reduce_block() with 256
/// threads.
template <class Combine>
__device__ float reduce_lanes(float (&values)[lane_elements]) {
  auto with_lane = [](float value, int distance) {
    return Combine()(value, __shfl_xor_sync(~0U, value, distance));
  };
  // Values 16 and 8 apart, then 4, 2 and 1, then 128, 64 and 32.
#pragma unroll
  for (int distance = 2; distance > 0; distance /= 2)
#pragma unroll
    for (float& value : values) value = with_lane(value, distance);
#pragma unroll
  for (int size = lane_elements / 2; size > 0; size /= 2)
#pragma unroll
    for (int i = 0; i < size; ++i) values[i] = Combine()(values[i], values[i + size]);
  auto result = values[0];
#pragma unroll
  for (int distance = 16; distance > 2; distance /= 2) result = with_lane(result, distance);
  return result;
}

/// Every 256th element is combined in order, then the results of these.
template <class Combine, class T>
__global__ void __launch_bounds__(part_threads)
    reduce_rows_kernel(axis_parts parts, const T* x, scaled_output y) {
  for_each_part_of_warp(parts, [&](std::int64_t index) {
    auto part = parts.at(index);
    float values[lane_elements];
#pragma unroll
    for (float& value : values) value = Combine::neutral;
    for_each_pack_of_part(x + part.start, static_cast<int>(part.size), Combine::neutral,
                          [&](int lane_element, int, const auto& elements) {
#pragma unroll
                            for (int i = 0; i < pack<T>::size; ++i)
                              values[lane_element + i] = Combine()(values[lane_element + i], elements[i]);
                          });
    auto result = reduce_lanes<Combine>(values);
    if (threadIdx.x % warp_threads == 0) y.write(index, result);
  });
}

/// All elements of a part are combined in order.
template <class Combine, int Columns, class T>
__global__ void __launch_bounds__(part_threads)
    reduce_columns_kernel(axis_parts parts, const T* x, scaled_output y) {
  for_parts_of_thread<Columns>(parts, [&](std::int64_t index) {
    float values[Columns];
#pragma unroll
    for (float& value : values) value = Combine::neutral;
    for_each_row_of_part<Columns>(parts.at(index), x, parts.along.inner, [&](int, const auto& elements) {
#pragma unroll
      for (int i = 0; i < Columns; ++i) values[i] = Combine()(values[i], elements[i]);
    });
#pragma unroll
    for (int i = 0; i < Columns; ++i) y.write(index + i, values[i]);
  });
}

template <class Combine>
void reduce_once(const tensor& x, const axis_parts& parts, scaled_output y) {
  with_floating(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if (parts.along.inner == 1)
      launch_on_rows(x.device(), parts, reduce_rows_kernel<Combine, T>, elements_of<T>(x), y);
    else
      launch_on_columns<T>(
          x, parts, [](auto columns) { return reduce_columns_kernel<Combine, columns, T>; },
          elements_of<T>(x), y);
  });
}

/// Very long columns have longer parts.
std::int64_t part_of(const reduced_axis& along) {
  constexpr std::int64_t row_part = 16384, column_part = 256, max_parts_of_column = 65535;
  if (along.inner == 1) return row_part;
  return std::max(column_part, (along.count + max_parts_of_column - 1) / max_parts_of_column);
}

/// y = factor * the combined elements
template <class Combine>
void reduce(const tensor& x, const reduced_axis& along, float factor, tensor& y) {
  auto elements = x;
  // Rows of one element are columns of one element: a thread for each instead of a warp.
  auto rest = along.count > 1 ? along : reduced_axis{1, 1, along.outer * along.inner};
  for (;;) {
    axis_parts parts(rest, part_of(rest));
    if (parts.per_axis == 1) return reduce_once<Combine>(elements, parts, {y, factor});
    auto results = tensor::empty({rest.outer, parts.per_axis, rest.inner}, dtype::f32, x.device());
    reduce_once<Combine>(elements, parts, {results, 1});
    elements = results;
    rest.count = parts.per_axis;
  }
}

template <class Combine>
void extreme(const tensor& x, const reduced_axis& along, tensor& y) {
  reduce<Combine>(x, along, 1, y);
}

}  // namespace

reduction_kernels reduction() {
  return {.sum = reduce<cuda::sum>,
          .max = extreme<larger>,
          .min = extreme<smaller>,
          .argmax = argmax,
          .total_sum = total_sum,
          .sum_of_squares = sum_of_squares,
          .block_squares = block_squares,
          .all_finite = all_finite,
          .scale_all = scale_all};
}

}  // namespace troupe::cuda
