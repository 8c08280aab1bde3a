#include "troupe/ops/cuda/kernel_tables.hpp"
#include "troupe/ops/cuda/rows.cuh"

// One thread block per row. Each element has a unique key; smaller keys come first. Each of k passes over the
// row finds the smallest key above the previous one.

namespace troupe::cuda {
namespace {

/// The upper half decreases with the value, with NaN before all numbers; the lower half is the index.
__device__ std::uint64_t key_of(float value, std::uint32_t index) {
  auto bits = __float_as_uint(value == 0 ? 0.0F : value);  // -0 and 0 are equal
  auto rising = bits & 0x80000000U ? ~bits : bits | 0x80000000U;
  auto falling = value != value ? 0U : ~rising;
  return static_cast<std::uint64_t>(falling) << 32 | index;
}

struct smallest_key {
  static constexpr unsigned long long neutral = ~0ULL;
  __device__ unsigned long long operator()(unsigned long long a, unsigned long long b) const {
    return min(a, b);
  }
};

template <class T>
__global__ void __launch_bounds__(row_threads)
    select_kernel(row_layout layout, std::int64_t k, const T* x, T* values, std::int64_t* indices) {
  x += blockIdx.x * layout.size;
  values += blockIdx.x * k;
  indices += blockIdx.x * k;
  unsigned long long last = 0;
  for (std::int64_t rank = 0; rank < k; ++rank) {
    auto best = smallest_key::neutral;
    for (std::int64_t i = threadIdx.x; i < layout.size; i += blockDim.x) {
      unsigned long long key = key_of(as_float(x[i]), static_cast<std::uint32_t>(i));
      if ((rank == 0 || key > last) && key < best) best = key;
    }
    last = reduce_block<smallest_key>(best);
    if (threadIdx.x > 0) continue;
    auto index = static_cast<std::uint32_t>(last);
    values[rank] = x[index];
    indices[rank] = index;
  }
}

void select(const tensor& x, tensor& values, tensor& indices) {
  require_short_rows("top_k", layout_of_rows(x));
  with_floating(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch_rows<T>(x.device(), num_rows(x), layout_of_rows(x), select_kernel<T>, values.shape()[-1],
                   elements_of<T>(x), elements_of<T>(values), elements_of<std::int64_t>(indices));
  });
}

}  // namespace

top_k_kernels top_k() { return {.select = select}; }

}  // namespace troupe::cuda
