#include "troupe/ops/cuda/attention_scores.hpp"

#include "troupe/ops/cuda/rows.cuh"

namespace troupe::cuda {
namespace {

/// How many keys query `row` of [heads, T] sees.
__device__ std::int64_t num_seen(std::int64_t row, std::int64_t positions, bool causal) {
  return causal ? row % positions + 1 : positions;
}

template <class T>
__global__ void softmax_kernel(std::int64_t positions, score_options options, const float* scores,
                               T* probabilities, float* log_sum_exp) {
  std::int64_t row = blockIdx.x, seen = num_seen(row, positions, options.causal);
  scores += row * positions;
  probabilities += row * positions;
  float top = largest::neutral;
  for (std::int64_t key = threadIdx.x; key < seen; key += blockDim.x)
    top = fmaxf(top, options.scale * scores[key]);
  top = reduce_block<largest>(top);
  float total = 0;
  for (std::int64_t key = threadIdx.x; key < seen; key += blockDim.x)
    total += expf(options.scale * scores[key] - top);
  total = reduce_block<sum>(total);
  auto factor = 1 / total;
  for (std::int64_t key = threadIdx.x; key < positions; key += blockDim.x)
    probabilities[key] = rounded<T>(key < seen ? expf(options.scale * scores[key] - top) * factor : 0);
  if (threadIdx.x == 0) log_sum_exp[row] = top + logf(total);
}

/// A warp for each head of each position.
template <class T>
__global__ void delta_kernel(std::int64_t width, const T* dout, const T* out, float* delta) {
  auto start = blockIdx.x * width;
  float total = 0;
  for (std::int64_t i = threadIdx.x; i < width; i += warp_threads)
    total += as_float(dout[start + i]) * as_float(out[start + i]);
  total = reduce_warp<sum>(total);
  if (threadIdx.x == 0) delta[blockIdx.x] = total;
}

template <class T>
__global__ void gradient_kernel(std::int64_t positions, std::int64_t delta_stride, score_options options,
                                const float* scores, const float* dprobabilities, const float* log_sum_exp,
                                const float* delta, T* probabilities, T* dscores) {
  std::int64_t row = blockIdx.x, seen = num_seen(row, positions, options.causal);
  auto start = row * positions;
  auto shift = log_sum_exp[row], less = delta[row % positions * delta_stride + row / positions];
  for (std::int64_t key = threadIdx.x; key < positions; key += blockDim.x) {
    auto p = key < seen ? expf(options.scale * scores[start + key] - shift) : 0;
    probabilities[start + key] = rounded<T>(p);
    dscores[start + key] =
        rounded<T>(key < seen ? options.scale * p * (dprobabilities[start + key] - less) : 0);
  }
}

/// Of a block that goes over `count` elements.
unsigned threads_for(std::int64_t count) {
  return static_cast<unsigned>(std::clamp<std::uint64_t>(std::bit_ceil(static_cast<std::uint64_t>(count)),
                                                         warp_threads, block_threads));
}

}  // namespace

void softmax_of_scores(const tensor& scores, const score_options& options, tensor& probabilities,
                       tensor& log_sum_exp) {
  auto positions = scores.extents()[-1];
  with_floating(probabilities.type(), [&](auto zero) {
    using T = decltype(zero);
    launch(scores.where(), static_cast<unsigned>(num_rows(scores)), threads_for(positions), softmax_kernel<T>,
           positions, options, elements_of<float>(scores), elements_of<T>(probabilities),
           elements_of<float>(log_sum_exp));
  });
}

void attention_delta(const tensor& dout, const tensor& out, tensor& delta) {
  auto count = delta.num_elements();
  if (count == 0) return;
  with_floating(out.type(), [&](auto zero) {
    using T = decltype(zero);
    launch(out.where(), static_cast<unsigned>(count), warp_threads, delta_kernel<T>,
           out.num_elements() / count, elements_of<T>(dout), elements_of<T>(out), elements_of<float>(delta));
  });
}

void score_gradients(const tensor& scores, const tensor& dprobabilities, const tensor& log_sum_exp,
                     const tensor& delta, std::int64_t delta_stride, const score_options& options,
                     tensor& probabilities, tensor& dscores) {
  auto positions = scores.extents()[-1];
  with_floating(probabilities.type(), [&](auto zero) {
    using T = decltype(zero);
    launch(scores.where(), static_cast<unsigned>(num_rows(scores)), threads_for(positions),
           gradient_kernel<T>, positions, delta_stride, options, elements_of<float>(scores),
           elements_of<float>(dprobabilities), elements_of<float>(log_sum_exp), elements_of<float>(delta),
           elements_of<T>(probabilities), elements_of<T>(dscores));
  });
}

}  // namespace troupe::cuda
