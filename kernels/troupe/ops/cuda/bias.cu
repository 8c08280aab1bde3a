#include "troupe/ops/cuda/bias.hpp"

#include "troupe/ops/cuda/channel_sums.cuh"
#include "troupe/ops/cuda/floating_values.cuh"

namespace troupe::cuda {
namespace {

template <class T>
__global__ void bias_kernel(batch_norm_problem problem, std::int64_t count, floating_values bias, bool relu,
                            T* y) {
  auto i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  auto value = as_float(y[i]) + bias.at(i / problem.size % problem.channels, 0);
  y[i] = rounded<T>(relu && value <= 0 ? 0 : value);
}

template <class T>
struct value_term {
  const T* x;
  __device__ float2 operator()(std::int64_t at, std::int64_t) const { return {as_float(x[at]), 0}; }
};

template <class T>
__global__ void store_kernel(channel_sums sums, std::int64_t channels, bool accumulate, T* gradient) {
  auto channel = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (channel >= channels) return;
  auto value = static_cast<float>(sums.of(channel).x);
  gradient[channel] = rounded<T>(accumulate ? as_float(gradient[channel]) + value : value);
}

}  // namespace

void add_channel_bias(const batch_norm_problem& problem, const tensor& bias, bool relu, tensor& y) {
  if (!bias.defined() && !relu) return;
  auto count = y.num_elements();
  with_floating(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch(y.device(), blocks_for(count), block_threads, bias_kernel<T>, problem, count,
           floating_values(bias), relu, elements_of<T>(y));
  });
}

void sum_channels(const batch_norm_problem& problem, const tensor& dy, tensor& gradient, gradient_mode mode) {
  with_floating(dy.dtype(), [&](auto from) {
    using From = decltype(from);
    auto sums = sums_over_channels(problem, dy.device(), value_term<From>{elements_of<From>(dy)});
    with_floating(gradient.dtype(), [&](auto to) {
      using To = decltype(to);
      launch(dy.device(), blocks_for(problem.channels), block_threads, store_kernel<To>, sums.sums,
             problem.channels, mode == gradient_mode::accumulate, elements_of<To>(gradient));
    });
  });
}

}  // namespace troupe::cuda
