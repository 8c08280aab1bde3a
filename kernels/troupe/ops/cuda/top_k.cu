#include "troupe/ops/cuda/kernel_tables.hpp"
#include "troupe/ops/cuda/loops/rows.cuh"

// One thread block per row. Each element has a unique key; smaller keys come first. In a round each thread
// finds the best of its elements. The n-th best of these bounds the n first of the row, and only the n
// threads with a best within the bound have elements within it: few are read again, sorted and written. One
// round is enough unless k is large, and so the row is read once.

namespace troupe::cuda {
namespace {

using sort_key = unsigned long long;

constexpr unsigned select_threads = 512;
/// The keys that a round sorts at most.
constexpr unsigned max_candidates = 4096;
/// After all keys, which end in an index into the row.
constexpr sort_key behind_all = ~0ULL;

/// The upper half decreases with the value, with NaN before all numbers; the lower half is the index.
__device__ sort_key key_of(float value, std::uint32_t index) {
  auto bits = __float_as_uint(value + 0.0F);  // -0 becomes 0
  auto falling = bits & 0x80000000U ? bits : bits ^ 0x7FFFFFFFU;
  if (value != value) falling = 0;
  return static_cast<sort_key>(falling) << 32 | index;
}

/// Calls `visit` with the keys of a pack. Lanes behind the row's end come after all its elements.
template <class T, class Visit>
__device__ void for_each_key(const T* row, std::int64_t first, row_layout layout, const Visit& visit) {
  auto values = read_lanes(row, first, layout, -HUGE_VALF);
  auto index = static_cast<std::uint32_t>(first);
#pragma unroll
  for (int i = 0; i < values.size; ++i) visit(key_of(values.lane[i], index + static_cast<unsigned>(i)));
}

/// Sorts `count` keys in shared memory, a power of two, by a bitonic network; the whole block calls it.
__device__ void sort_keys(sort_key* keys, unsigned count) {
  for (unsigned size = 2; size <= count; size *= 2)
    for (unsigned distance = size / 2; distance > 0; distance /= 2) {
      __syncthreads();
      for (auto i = threadIdx.x; i < count / 2; i += blockDim.x) {
        auto low = 2 * i - (i & (distance - 1)), high = low + distance;
        auto falls = (low & size) != 0;
        auto a = keys[low], b = keys[high];
        if ((a > b) == falls) continue;
        keys[low] = b;
        keys[high] = a;
      }
    }
  __syncthreads();
}

/// Adds the keys up to `bound`, and from `least` on, of the packs of those threads of this warp whose best is
/// within the bound. The warp reads each thread's packs together.
template <class T>
__device__ void collect(const T* row, row_layout layout, sort_key least, sort_key bound, sort_key best,
                        sort_key* keys, unsigned* count) {
  auto lane = threadIdx.x % warp_threads, warp = threadIdx.x - lane;
  for (auto owners = __ballot_sync(~0U, best <= bound); owners != 0; owners &= owners - 1) {
    auto owner = warp + static_cast<unsigned>(__ffs(static_cast<int>(owners))) - 1;
    auto step = std::int64_t{blockDim.x} * pack<T>::size;
    for (auto first = owner * pack<T>::size + lane * step; first < layout.size; first += warp_threads * step)
      for_each_key(row, first, layout, [&](sort_key key) {
        if (key >= least && key <= bound) keys[atomicAdd(count, 1U)] = key;
      });
  }
}

template <class T>
__global__ void __launch_bounds__(select_threads, 3)
    select_kernel(row_layout layout, std::int64_t k, const T* x, T* values, std::int64_t* indices) {
  __shared__ sort_key keys[max_candidates];
  __shared__ unsigned num_candidates;
  x += blockIdx.x * layout.size;
  values += blockIdx.x * k;
  indices += blockIdx.x * k;
  // All but the last of the threads within a bound may have nothing but elements within it.
  auto block_elements = std::int64_t{blockDim.x} * pack<T>::size;
  auto of_thread = (layout.size + block_elements - 1) / block_elements * pack<T>::size;
  auto most = min((max_candidates - 1) / of_thread + 1, std::int64_t{blockDim.x});
  sort_key least = 0;  // that has not been written
  for (std::int64_t rank = 0; rank < k;) {
    auto best = behind_all;
    for_each_pack<T>(layout, [&](std::int64_t first) {
      for_each_key(x, first, layout, [&](sort_key key) {
        if (key >= least && key < best) best = key;
      });
    });
    keys[threadIdx.x] = best;
    if (threadIdx.x == 0) num_candidates = 0;
    sort_keys(keys, blockDim.x);
    auto bound = keys[min(most, k - rank) - 1];
    __syncthreads();  // all have read it
    collect(x, layout, least, bound, best, keys, &num_candidates);
    __syncthreads();
    auto count = num_candidates;
    auto padded = 1U;
    while (padded < count) padded *= 2;
    for (auto i = count + threadIdx.x; i < padded; i += blockDim.x) keys[i] = behind_all;
    sort_keys(keys, padded);
    for (std::int64_t i = threadIdx.x; i < min(std::int64_t{count}, k - rank); i += blockDim.x) {
      auto index = static_cast<std::uint32_t>(keys[i]);
      values[rank + i] = x[index];
      indices[rank + i] = index;
    }
    least = keys[count - 1] + 1;
    rank += count;
    __syncthreads();  // before the next round's keys
  }
}

void select(const tensor& x, tensor& values, tensor& indices) {
  require_short_rows("top_k", layout_of_rows(x));
  with_floating(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch_rows<T, select_threads>(x.device(), num_rows(x), layout_of_rows(x), select_kernel<T>,
                                   values.shape()[-1], elements_of<T>(x), elements_of<T>(values),
                                   elements_of<std::int64_t>(indices));
  });
}

}  // namespace

top_k_kernels top_k() { return {.select = select}; }

}  // namespace troupe::cuda
