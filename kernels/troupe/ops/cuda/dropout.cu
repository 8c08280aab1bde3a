#include "troupe/ops/cuda/kernel_tables.hpp"
#include "troupe/ops/cuda/loops/rows.cuh"

namespace troupe::cuda {
namespace {

/// dropout_mask with types that can be used in kernels.
struct mask {
  std::uint32_t key[2], place[3];
  std::uint32_t threshold;
  float factor;
};

/// Words [4 index, 4 index + 4) of the stream: philox4x32 of troupe/random/philox.hpp.
__device__ uint4 words_of_block(const mask& drawn, std::uint32_t index) {
  uint4 counter{drawn.place[0], drawn.place[1], drawn.place[2], index};
  auto key_0 = drawn.key[0], key_1 = drawn.key[1];
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    constexpr std::uint32_t multiplier_0 = 0xD2511F53, multiplier_1 = 0xCD9E8D57;
    counter = {__umulhi(multiplier_1, counter.z) ^ counter.y ^ key_0, multiplier_1 * counter.z,
               __umulhi(multiplier_0, counter.x) ^ counter.w ^ key_1, multiplier_0 * counter.x};
    key_0 += 0x9E3779B9;
    key_1 += 0xBB67AE85;
  }
  return counter;
}

__device__ float kept(float x, std::uint32_t word, const mask& dropped) {
  return word >= dropped.threshold ? x * dropped.factor : x - x;  // 0, but NaN for infinity and NaN
}

template <class T>
__global__ void dropout_kernel(mask dropped, row_layout layout, const T* x, T* y) {
  constexpr int lanes = pack<T>::size;
  auto first = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * lanes;
  if (first >= layout.size) return;
  layout.are_aligned &= first + lanes <= layout.size;
  auto values = read_lanes(x, first, layout, 0);
#pragma unroll
  for (int i = 0; i < lanes; i += 4) {
    auto words = words_of_block(dropped, static_cast<std::uint32_t>((first + i) / 4));
    values.lane[i] = kept(values.lane[i], words.x, dropped);
    values.lane[i + 1] = kept(values.lane[i + 1], words.y, dropped);
    values.lane[i + 2] = kept(values.lane[i + 2], words.z, dropped);
    values.lane[i + 3] = kept(values.lane[i + 3], words.w, dropped);
  }
  write_lanes(y, first, layout, values);
}

void apply(const tensor& x, const dropout_mask& dropout, tensor& y) {
  mask dropped{{dropout.key[0], dropout.key[1]},
               {dropout.place[0], dropout.place[1], dropout.place[2]},
               dropout.threshold,
               dropout.factor};
  row_layout layout{x.num_elements(), is_aligned(x) && is_aligned(y)};
  with_floating(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    auto num_packs = (layout.size + pack<T>::size - 1) / pack<T>::size;
    launch(x.device(), blocks_for(num_packs), block_threads, dropout_kernel<T>, dropped, layout,
           elements_of<T>(x), elements_of<T>(y));
  });
}

}  // namespace

dropout_kernels dropout() { return {.apply = apply}; }

}  // namespace troupe::cuda
