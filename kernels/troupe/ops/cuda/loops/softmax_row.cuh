#pragma once
#include <cfloat>

#include "troupe/ops/cuda/loops/rows.cuh"

// The largest score of a row and the sum of e^(score - largest) in one pass over the row. Each thread
// rescales its sum when it finds a larger score (Milakov and Gimelshein, Online normalizer calculation for
// softmax, 2018).

namespace troupe::cuda {

/// The maximum number of threads per block of kernels that call softmax_of_row().
constexpr unsigned softmax_threads = 512;

/// To about 4 units in the last place near 0; 0 where e^x is below 2^-126.
__device__ inline float quick_exp(float x) { return ptx::ex2_approx_ftz(x * 1.44269504088896341F); }

/// `largest`: NaN are ignored. `total`: NaN if a score is, or if the largest is infinite.
struct row_softmax {
  float largest, total;
  /// The largest score of this thread's elements, and the first element of the pack that has it.
  float largest_of_thread;
  std::int64_t pack_of_thread;
};

namespace row_parts {

/// The packs that a thread loads before it uses the first.
constexpr int packs_at_once = 4;

/// Scores beyond the row's end are -infinity.
template <class T>
__device__ void read_packs(const T* z, std::int64_t first, row_layout layout,
                           lanes_of<T> (&scores)[packs_at_once]) {
  auto distance = static_cast<std::int64_t>(blockDim.x) * pack<T>::size;
#pragma unroll
  for (int at = 0; at < packs_at_once; ++at) {
    if (first + at * distance < layout.size) {
      scores[at] = read_lanes(z, first + at * distance, layout, largest::neutral);
    } else {
#pragma unroll
      for (float& score : scores[at].lane) score = largest::neutral;
    }
  }
}

/// `total` is of this thread, to its own largest score, or to the lowest finite one if all are -infinity.
template <class T>
__device__ row_softmax of_thread(const T* z, row_layout layout) {
  auto distance = static_cast<std::int64_t>(blockDim.x) * pack<T>::size;
  std::int64_t first = threadIdx.x * pack<T>::size;
  row_softmax mine{0, 0, largest::neutral, first};
  for (; first < layout.size; first += packs_at_once * distance) {
    lanes_of<T> scores[packs_at_once];
    read_packs(z, first, layout, scores);
    auto before = mine.largest_of_thread;
#pragma unroll
    for (int at = 0; at < packs_at_once; ++at) {
      auto top = largest::neutral;
#pragma unroll
      for (float score : scores[at].lane) top = fmaxf(top, score);
      if (top > mine.largest_of_thread) {
        mine.largest_of_thread = top;
        mine.pack_of_thread = first + at * distance;
      }
    }
    auto shift = fmaxf(mine.largest_of_thread, -FLT_MAX);
    if (mine.largest_of_thread > before) mine.total *= quick_exp(before - shift);
#pragma unroll
    for (const auto& each : scores)
#pragma unroll
      for (float score : each.lane) mine.total += quick_exp(score - shift);
  }
  return mine;
}

}  // namespace row_parts

/// Every thread of the block gets the row's `largest` and `total`, whose sum's order depends only on the
/// row's size and the number of threads.
template <class T>
__device__ row_softmax softmax_of_row(const T* z, row_layout layout) {
  // With constant alignment the loads of all packs come before their first use.
  auto all = layout.are_aligned ? row_parts::of_thread(z, {layout.size, true})
                                : row_parts::of_thread(z, {layout.size, false});
  all.largest = reduce_block<largest>(all.largest_of_thread);
  auto shift = fmaxf(all.largest_of_thread, -FLT_MAX);
  all.total = reduce_block<sum>(all.total * quick_exp(shift - all.largest));
  return all;
}

/// The index of the first element that is the largest, or smallest_index::neutral if all are NaN.
template <class T>
__device__ unsigned index_of_largest(const T* z, row_layout layout, const row_softmax& of_row) {
  auto best = smallest_index::neutral;
  if (of_row.largest_of_thread == of_row.largest && of_row.pack_of_thread < layout.size) {
    auto scores = read_lanes(z, of_row.pack_of_thread, layout, nanf(""));
#pragma unroll
    for (int i = scores.size - 1; i >= 0; --i)
      if (scores.lane[i] == of_row.largest) best = static_cast<unsigned>(of_row.pack_of_thread + i);
  }
  return reduce_block<smallest_index>(best);
}

}  // namespace troupe::cuda
