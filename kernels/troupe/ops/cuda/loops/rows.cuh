#pragma once
#include <algorithm>
#include <bit>

#include "troupe/ops/cuda/loops/elements.cuh"
#include "troupe/ops/cuda/loops/launch.cuh"

// Operations on rows (the last axis): one thread block per row; each thread processes one pack of elements at
// a time.

namespace troupe::cuda {

/// The elements of a pack as floats.
template <class T>
struct lanes_of {
  static constexpr int size = pack<T>::size;
  float lane[size];
};

/// The length of the rows, and whether each row is aligned to 16 bytes.
struct row_layout {
  std::int64_t size = 0;
  bool are_aligned = false;
};

template <class... Tensors>
row_layout layout_of_rows(const tensor& first, const Tensors&... others) {
  auto size = first.shape()[-1];
  auto rows_aligned = size * static_cast<std::int64_t>(size_bytes(first.dtype())) % 16 == 0;
  return {size, ((rows_aligned && is_aligned(first)) && ... && is_aligned(others))};
}

/// For kernels that count a row's elements in 32 bits. Throws std::invalid_argument if there are more.
inline void require_short_rows(std::string_view operation, row_layout layout) {
  constexpr auto longest = std::int64_t{1} << 32;
  if (layout.size > longest)
    throw_invalid(operation, "rows of at most 2^32 elements on a GPU", std::to_string(layout.size));
}

/// Elements [first, first + lanes) of a row; `outside` is the value beyond the row's end.
template <class T>
__device__ lanes_of<T> read_lanes(const T* row, std::int64_t first, row_layout layout, float outside) {
  lanes_of<T> result;
  if (layout.are_aligned) {
    auto from = load_pack(row + first);
#pragma unroll
    for (int i = 0; i < result.size; ++i) result.lane[i] = as_float(from.lanes[i]);
  } else {
#pragma unroll
    for (int i = 0; i < result.size; ++i)
      result.lane[i] = first + i < layout.size ? as_float(row[first + i]) : outside;
  }
  return result;
}

template <class T>
__device__ void write_lanes(T* row, std::int64_t first, row_layout layout, const lanes_of<T>& values) {
  if (layout.are_aligned) {
    pack<T> to;
#pragma unroll
    for (int i = 0; i < values.size; ++i) to.lanes[i] = rounded<T>(values.lane[i]);
    store_pack(row + first, to);
  } else {
#pragma unroll
    for (int i = 0; i < values.size; ++i)
      if (first + i < layout.size) row[first + i] = rounded<T>(values.lane[i]);
  }
}

/// Calls `visit(first)` for the packs of a row that are this thread's.
template <class T, class Visit>
__device__ void for_each_pack(row_layout layout, const Visit& visit) {
  constexpr std::int64_t step = pack<T>::size;
  for (auto first = threadIdx.x * step; first < layout.size; first += blockDim.x * step) visit(first);
}

struct sum {
  static constexpr float neutral = 0;
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct largest {
  static constexpr float neutral = -HUGE_VALF;
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct smallest_index {
  static constexpr unsigned neutral = ~0U;
  __device__ unsigned operator()(unsigned a, unsigned b) const { return min(a, b); }
};

template <class Combine, class Value>
__device__ Value reduce_warp(Value value) {
#pragma unroll
  for (int distance = warp_threads / 2; distance > 0; distance /= 2)
    value = Combine()(value, __shfl_xor_sync(~0U, value, distance));
  return value;
}

/// Combines a value of each thread of the block, in an order that depends only on the number of threads;
/// every thread gets the result.
template <class Combine, class Value>
__device__ Value reduce_block(Value value) {
  __shared__ Value of_warps[warp_threads];
  auto lane = threadIdx.x % warp_threads;
  value = reduce_warp<Combine>(value);
  __syncthreads();  // a result from before may still be read
  if (lane == 0) of_warps[threadIdx.x / warp_threads] = value;
  __syncthreads();
  return reduce_warp<Combine>(lane < blockDim.x / warp_threads ? of_warps[lane] : Value{Combine::neutral});
}

/// Combines `term(x)` of all elements x of a row, with `outside` for lanes beyond its end.
template <class Combine, class T, class Term>
__device__ float reduce_row(const T* row, row_layout layout, float outside, const Term& term) {
  float combined = Combine::neutral;
  for_each_pack<T>(layout, [&](std::int64_t first) {
    auto x = read_lanes(row, first, layout, outside);
#pragma unroll
    for (int i = 0; i < x.size; ++i) combined = Combine()(combined, term(x.lane[i]));
  });
  return reduce_block<Combine>(combined);
}

/// Combines `term(index, a, b)` of the elements of two rows; both are 0 behind their ends.
template <class Combine, class T, class Term>
__device__ float reduce_rows(const T* a, const T* b, row_layout layout, const Term& term) {
  float combined = Combine::neutral;
  for_each_pack<T>(layout, [&](std::int64_t first) {
    auto from_a = read_lanes(a, first, layout, 0), from_b = read_lanes(b, first, layout, 0);
#pragma unroll
    for (int i = 0; i < from_a.size; ++i)
      combined = Combine()(combined, term(first + i, from_a.lane[i], from_b.lane[i]));
  });
  return reduce_block<Combine>(combined);
}

/// y = function(index, x)
template <class T, class Function>
__device__ void map_row(const T* x, T* y, row_layout layout, const Function& function) {
  for_each_pack<T>(layout, [&](std::int64_t first) {
    auto values = read_lanes(x, first, layout, 0);
#pragma unroll
    for (int i = 0; i < values.size; ++i) values.lane[i] = function(first + i, values.lane[i]);
    write_lanes(y, first, layout, values);
  });
}

/// y = function(index, a, b)
template <class T, class Function>
__device__ void map_rows(const T* a, const T* b, T* y, row_layout layout, const Function& function) {
  for_each_pack<T>(layout, [&](std::int64_t first) {
    auto from_a = read_lanes(a, first, layout, 0), from_b = read_lanes(b, first, layout, 0);
#pragma unroll
    for (int i = 0; i < from_a.size; ++i)
      from_a.lane[i] = function(first + i, from_a.lane[i], from_b.lane[i]);
    write_lanes(y, first, layout, from_a);
  });
}

/// The maximum number of threads per block in launch_rows; kernels are compiled with this launch bound, so
/// that their registers suffice.
constexpr unsigned row_threads = 1024;

/// Queues `kernel(layout, arguments...)`, of MaxThreads at most, with a block for each of `num_rows` rows of
/// T. Throws std::invalid_argument for more rows than a grid has blocks.
template <class T, unsigned MaxThreads = row_threads, class Kernel, class... Arguments>
void launch_rows(device target, std::int64_t num_rows, row_layout layout, Kernel kernel,
                 Arguments... arguments) {
  auto num_packs = static_cast<std::uint64_t>((layout.size + pack<T>::size - 1) / pack<T>::size);
  auto threads = std::clamp<std::uint64_t>(std::bit_ceil(num_packs), warp_threads, MaxThreads);
  launch(target, num_blocks(num_rows), static_cast<unsigned>(threads), kernel, layout, arguments...);
}

inline std::int64_t num_rows(const tensor& x) {
  auto size = x.shape()[-1];
  return size == 0 ? 0 : x.num_elements() / size;
}

}  // namespace troupe::cuda
