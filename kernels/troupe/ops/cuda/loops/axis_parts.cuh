#pragma once
#include <algorithm>

#include "troupe/ops/cuda/loops/divisor.cuh"
#include "troupe/ops/cuda/loops/elements.cuh"
#include "troupe/ops/cuda/loops/launch.cuh"
#include "troupe/ops/kernels/reduction.hpp"

// A reduction along an axis in parts of a fixed size, each with one result. If the axis is the innermost, a
// warp reduces a part, which is contiguous; if not, a thread does (column_parts.cuh).

namespace troupe::cuda {

/// `size` elements of a row or column from its element `first` on; the first of them is element `start` of
/// the whole tensor.
struct axis_part {
  std::int64_t start, first, size;
};

/// The parts of all rows or columns of [outer, count, inner], count >= 1, by their flat index in [outer,
/// per_axis, inner].
struct axis_parts {
  axis_parts(const reduced_axis& axis, std::int64_t elements)
      : along(axis),
        part_size(elements),
        per_axis((axis.count + elements - 1) / elements),
        total(axis.outer * per_axis * axis.inner),
        by_inner(axis.inner),
        by_parts(per_axis) {}

  __device__ axis_part at(std::int64_t index) const {
    auto line = by_inner.quotient(index), outer = by_parts.quotient(line);
    auto first = (line - outer * per_axis) * part_size;
    return {(outer * along.count + first - line) * along.inner + index, first,
            min(part_size, along.count - first)};
  }

  reduced_axis along;
  std::int64_t part_size, per_axis, total;
  divisor<std::int64_t> by_inner, by_parts;
};

/// The threads of a block that reduces parts; few, so that few parts occupy many processors.
constexpr unsigned part_threads = 64;

/// Calls `visit(index)` for the parts that are this warp's.
template <class Visit>
__device__ void for_each_part_of_warp(const axis_parts& parts, const Visit& visit) {
  constexpr std::int64_t warps = part_threads / warp_threads;
  for (auto index = blockIdx.x * warps + threadIdx.x / warp_threads; index < parts.total;
       index += gridDim.x * warps)
    visit(index);
}

/// Queues `kernel(parts, arguments...)` for parts of rows. It calls for_each_part_of_warp().
template <class Kernel, class... Arguments>
void launch_on_rows(device target, const axis_parts& parts, Kernel kernel, Arguments... arguments) {
  constexpr std::int64_t warps = part_threads / warp_threads;
  auto blocks = std::min(max_blocks, (parts.total + warps - 1) / warps);
  launch(target, num_blocks(blocks), part_threads, kernel, parts, arguments...);
}

/// The adjacent elements that a lane has of each 256 of a part of a row.
constexpr int lane_elements = 8;

/// Calls `visit(lane_element, first, x)` for the packs of a part of a row, `size` elements from `part` on,
/// that are this lane's.
/// - `x`: the pack's elements, and `outside` beyond the end
/// - `first`: the first one's index in the part
/// - `lane_element`: its index, a constant, among the lane's elements of these 256
template <class T, class Visit>
__device__ void for_each_pack_of_part(const T* part, int size, float outside, const Visit& visit) {
  constexpr int pack_size = pack<T>::size, at_once = 8, warp_elements = warp_threads * lane_elements;
  constexpr auto lane_element = [](int n) { return n * pack_size % lane_elements; };
  constexpr auto offset = [](int n) { return n * pack_size / lane_elements * warp_elements; };
  auto is_aligned = reinterpret_cast<std::uintptr_t>(part) % 16 == 0;
  auto in_packs = is_aligned ? size / pack_size * pack_size : 0;
  auto begin = static_cast<int>(threadIdx.x % warp_threads) * lane_elements;
  for (auto first = begin; first < in_packs; first += offset(at_once)) {
    pack<T> packs[at_once];
#pragma unroll
    for (int n = 0; n < at_once; ++n) {
      auto i = first + offset(n) + lane_element(n);
      if (i < in_packs) packs[n] = load_pack(part + i);
    }
#pragma unroll
    for (int n = 0; n < at_once; ++n) {
      auto i = first + offset(n) + lane_element(n);
      float x[pack_size];
#pragma unroll
      for (int lane = 0; lane < pack_size; ++lane) x[lane] = as_float(packs[n].lanes[lane]);
      if (i < in_packs) visit(lane_element(n), i, x);
    }
  }
  if (in_packs == size) return;
  for (auto first = in_packs / warp_elements * warp_elements + begin; first < size; first += warp_elements)
#pragma unroll
    for (int n = 0; n < lane_elements / pack_size; ++n) {
      float x[pack_size];
#pragma unroll
      for (int lane = 0; lane < pack_size; ++lane) {
        auto i = first + lane_element(n) + lane;
        x[lane] = i >= in_packs && i < size ? as_float(part[i]) : outside;
      }
      visit(lane_element(n), first + lane_element(n), x);
    }
}

}  // namespace troupe::cuda
