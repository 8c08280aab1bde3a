#include "troupe/ops/cuda/reductions/reductions.hpp"

#include <cmath>
#include <utility>

#include "troupe/ops/cuda/loops/column_parts.cuh"

// Finds the largest element of each part and its index, and repeats that with the elements found until each
// row or column has one left. Reads x once: a lane remembers the pack that has its largest element, and looks
// up the element at the end.

namespace troupe::cuda {
namespace {

/// Whether `a` is larger than `b`; NaN is larger than all numbers.
__device__ bool exceeds(float a, float b) { return !(a <= b) && b == b; }

/// Where the parts' largest elements are written.
struct largest_elements {
  const std::int64_t* indices_of_x;  ///< none: the elements of x are those of the axis
  float* values;                     ///< none: they are not asked for
  std::int64_t* indices;

  /// The largest of part `index` is element `i` of it.
  __device__ void write(std::int64_t index, const axis_parts& parts, std::int64_t i, float value) const {
    auto part = parts.at(index);
    indices[index] = indices_of_x ? indices_of_x[part.start + i * parts.along.inner] : part.first + i;
    if (values) values[index] = value;
  }
};

template <class T>
__global__ void __launch_bounds__(part_threads)
    argmax_rows_kernel(axis_parts parts, const T* x, largest_elements results) {
  for_each_part_of_warp(parts, [&](std::int64_t index) {
    auto part = parts.at(index);
    const auto* row = x + part.start;
    auto size = static_cast<int>(part.size), lane = static_cast<int>(threadIdx.x % warp_threads);
    auto value = -HUGE_VALF;
    auto pack_with_it = lane * lane_elements;
    for_each_pack_of_part(row, size, value, [&](int, int first, const auto& elements) {
      auto top = elements[0];
#pragma unroll
      for (int i = 1; i < pack<T>::size; ++i)
        if (exceeds(elements[i], top)) top = elements[i];
      if (!exceeds(top, value)) return;
      value = top;
      pack_with_it = first;
    });
#pragma unroll
    for (int distance = warp_threads / 2; distance > 0; distance /= 2) {
      auto other = __shfl_xor_sync(~0U, value, distance);
      auto pack_with_other = __shfl_xor_sync(~0U, pack_with_it, distance);
      auto is_other = exceeds(other, value) || (!exceeds(value, other) && pack_with_other < pack_with_it);
      value = is_other ? other : value;
      pack_with_it = is_other ? pack_with_other : pack_with_it;
    }
    // Of the pack's elements, only those that are the largest equal it or are NaN.
    auto i = pack_with_it + lane;
    auto is_in_pack = lane < pack<T>::size && i < size;
    auto element = is_in_pack ? as_float(row[i]) : 0;
    auto matches = __ballot_sync(~0U, is_in_pack && (element == value || element != element));
    if (lane == 0) results.write(index, parts, pack_with_it + __ffs(static_cast<int>(matches)) - 1, value);
  });
}

template <int Columns, class T>
__global__ void __launch_bounds__(part_threads)
    argmax_columns_kernel(axis_parts parts, const T* x, largest_elements results) {
  for_parts_of_thread<Columns>(parts, [&](std::int64_t index) {
    float values[Columns];
    int rows[Columns] = {};
#pragma unroll
    for (float& value : values) value = -HUGE_VALF;
    for_each_row_of_part<Columns>(parts.at(index), x, parts.along.inner, [&](int row, const auto& elements) {
#pragma unroll
      for (int i = 0; i < Columns; ++i) {
        auto is_larger = exceeds(elements[i], values[i]);
        values[i] = is_larger ? elements[i] : values[i];
        rows[i] = is_larger ? row : rows[i];
      }
    });
#pragma unroll
    for (int i = 0; i < Columns; ++i) results.write(index + i, parts, rows[i], values[i]);
  });
}

void argmax_once(const tensor& x, const axis_parts& parts, largest_elements results) {
  with_floating(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if (parts.along.inner == 1)
      launch_on_rows(x.device(), parts, argmax_rows_kernel<T>, elements_of<T>(x), results);
    else
      launch_on_columns<T>(
          x, parts, [](auto columns) { return argmax_columns_kernel<columns, T>; }, elements_of<T>(x),
          results);
  });
}

constexpr std::int64_t row_part = 4096, column_part = 256;

}  // namespace

void argmax(const tensor& x, const reduced_axis& along, tensor& index) {
  auto elements = x;
  tensor indices;
  for (auto rest = along;;) {
    axis_parts parts(rest, rest.inner == 1 ? row_part : column_part);
    const auto* indices_of_x = elements_of<std::int64_t>(std::as_const(indices));
    if (parts.per_axis == 1)
      return argmax_once(elements, parts, {indices_of_x, nullptr, elements_of<std::int64_t>(index)});
    shape extents{rest.outer, parts.per_axis, rest.inner};
    auto values = tensor::empty(extents, dtype::f32, x.device()),
         places = tensor::empty(extents, dtype::i64, x.device());
    argmax_once(elements, parts,
                {indices_of_x, elements_of<float>(values), elements_of<std::int64_t>(places)});
    elements = values;
    indices = places;
    rest.count = parts.per_axis;
  }
}

}  // namespace troupe::cuda
