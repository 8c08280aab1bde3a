#include "troupe/ops/cuda/attention/attention_heads.cuh"
#include "troupe/ops/cuda/attention/attention_passes.hpp"
#include "troupe/ops/cuda/loops/rows.cuh"

namespace troupe::cuda {
namespace {

/// A warp for each head of each position.
template <class T>
__global__ void row_sums_kernel(attention_heads heads, const T* dout, const T* out, const float* log_sum_exp,
                                float2* row_sums) {
  constexpr float log2_of_e = 1.44269504088896341F;
  auto index = (static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x) / warp_threads;
  if (index >= heads.count * heads.positions) return;
  auto head = index / heads.positions;
  auto position = static_cast<int>(index % heads.positions),
       lane = static_cast<int>(threadIdx.x % warp_threads);
  const auto *a = heads.out(dout, head).row(position), *b = heads.out(out, head).row(position);
  float delta = 0;
  for (int i = lane; i < heads.width; i += warp_threads) delta += as_float(a[i]) * as_float(b[i]);
  delta = reduce_warp<sum>(delta);
  if (lane == 0) row_sums[index] = {log_sum_exp[index] * log2_of_e, delta};
}

}  // namespace

tensor attention_row_sums(const tensor& dout, const tensor& out, const tensor& log_sum_exp) {
  auto heads = heads_of(out, {.num_heads = static_cast<int>(log_sum_exp.shape()[1])});
  auto row_sums = tensor::empty({log_sum_exp.num_elements(), 2}, dtype::f32, out.device());
  with_floating(out.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch(out.device(), blocks_for(log_sum_exp.num_elements() * warp_threads), block_threads,
           row_sums_kernel<T>, heads, elements_of<T>(dout), elements_of<T>(out),
           elements_of<float>(log_sum_exp), elements_of<float2>(row_sums));
  });
  return row_sums;
}

}  // namespace troupe::cuda
