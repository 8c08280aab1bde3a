#include "troupe/ops/cuda/convolution/convolution_passes.hpp"

#include "troupe/ops/cuda/loops/channel_sums.cuh"
#include "troupe/ops/cuda/loops/floating_values.cuh"
#include "troupe/ops/cuda/loops/map_channels.cuh"

namespace troupe::cuda {
namespace {

struct sum_with_bias {
  float bias;
  bool relu;
  __device__ float operator()(float y) const {
    auto value = y + bias;
    return relu && value <= 0 ? 0 : value;
  }
};
struct sum_with_bias_of_channel {
  floating_values bias;
  bool relu;
  __device__ sum_with_bias operator()(std::int64_t channel) const { return {bias.at(channel, 0), relu}; }
};

template <class T>
__global__ void store_kernel(channel_sums sums, std::int64_t channels, bool accumulate, T* gradient) {
  auto channel = channel_of_warp();
  if (channel >= channels) return;
  auto value = static_cast<float>(sums.of(channel).x);
  if (threadIdx.x % warp_threads > 0) return;
  gradient[channel] = rounded<T>(accumulate ? as_float(gradient[channel]) + value : value);
}

}  // namespace

void add_channel_bias(const batch_norm_problem& problem, const tensor& bias, bool relu, tensor& y) {
  if (!bias.defined() && !relu) return;
  map_channels(problem, sum_with_bias_of_channel{floating_values(bias), relu}, y, y);
}

void sum_channels(const batch_norm_problem& problem, const tensor& dy, tensor& gradient, gradient_mode mode) {
  with_floating(dy.dtype(), [&](auto from) {
    using From = decltype(from);
    auto sums =
        sums_over_channels(problem, dy.device(), is_aligned(dy), value_term<From>{elements_of<From>(dy)});
    with_floating(gradient.dtype(), [&](auto to) {
      using To = decltype(to);
      launch(dy.device(), blocks_of_warps(problem.channels), block_threads, store_kernel<To>, sums.sums,
             problem.channels, mode == gradient_mode::accumulate, elements_of<To>(gradient));
    });
  });
}

}  // namespace troupe::cuda
