#include "troupe/ops/cuda/channel_sums.cuh"
#include "troupe/ops/cuda/floating_values.cuh"
#include "troupe/ops/cuda/kernel_tables.hpp"

namespace troupe::cuda {
namespace {

template <class T>
struct value_term {
  const T* x;
  __device__ float2 operator()(std::int64_t at, std::int64_t) const { return {as_float(x[at]), 0}; }
};

/// Squared deviations from the mean.
template <class T>
struct square_term {
  const T* x;
  const float* mean;
  __device__ float2 operator()(std::int64_t at, std::int64_t channel) const {
    auto distance = as_float(x[at]) - mean[channel];
    return {distance * distance, 0};
  }
};

/// dy and dy (x - mean)
template <class T>
struct gradient_term {
  const T *dy, *x;
  const float* mean;
  __device__ float2 operator()(std::int64_t at, std::int64_t channel) const {
    auto g = as_float(dy[at]);
    return {g, g * (as_float(x[at]) - mean[channel])};
  }
};

/// One thread per channel, as in the kernels below.
__device__ std::int64_t thread_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__global__ void mean_kernel(channel_sums sums, std::int64_t channels, double count, float* mean) {
  auto channel = thread_index();
  if (channel < channels) mean[channel] = static_cast<float>(sums.of(channel).x / count);
}

struct running_statistics {
  float *mean, *variance;  ///< or null
  double momentum;
};

__global__ void deviation_kernel(channel_sums sums, channel_sums squares, std::int64_t channels, double count,
                                 double epsilon, running_statistics running, float* rstd) {
  auto channel = thread_index();
  if (channel >= channels) return;
  auto square = squares.of(channel).x;
  rstd[channel] = static_cast<float>(1 / sqrt(square / count + epsilon));
  if (!running.mean) return;
  auto keep = 1 - running.momentum;
  running.mean[channel] =
      static_cast<float>(keep * running.mean[channel] + running.momentum * (sums.of(channel).x / count));
  running.variance[channel] =
      static_cast<float>(keep * running.variance[channel] + running.momentum * (square / (count - 1)));
}

__global__ void rstd_kernel(const float* variance, std::int64_t channels, double epsilon, float* rstd) {
  auto channel = thread_index();
  if (channel < channels) rstd[channel] = static_cast<float>(1 / sqrt(variance[channel] + epsilon));
}

/// y = (x - mean) rstd weight + bias
template <class T>
__global__ void affine_kernel(batch_norm_problem problem, std::int64_t count, const T* x, const float* mean,
                              const float* rstd, floating_values weight, floating_values bias, T* y) {
  auto i = thread_index();
  if (i >= count) return;
  auto channel = i / problem.size % problem.channels;
  auto scale = rstd[channel] * weight.at(channel, 1);
  y[i] = rounded<T>((as_float(x[i]) - mean[channel]) * scale + bias.at(channel, 0));
}

/// The terms subtracted from dy in each channel: its average, and a slope times the deviation from the mean.
__global__ void correction_kernel(channel_sums sums, std::int64_t channels, double count, const float* rstd,
                                  float2* corrections) {
  auto channel = thread_index();
  if (channel >= channels) return;
  auto total = sums.of(channel);
  double deviation = rstd[channel];
  corrections[channel] = {static_cast<float>(total.x / count),
                          static_cast<float>(deviation * deviation * total.y / count)};
}

template <class T>
__global__ void input_gradient_kernel(batch_norm_problem problem, std::int64_t count, const T* dy, const T* x,
                                      const float* mean, const float* rstd, floating_values weight,
                                      const float2* corrections, T* dx) {
  auto i = thread_index();
  if (i >= count) return;
  auto channel = i / problem.size % problem.channels;
  auto [average, slope] = corrections[channel];
  auto distance = as_float(x[i]) - mean[channel];
  dx[i] =
      rounded<T>(((as_float(dy[i]) - average) - distance * slope) * (rstd[channel] * weight.at(channel, 1)));
}

/// gradient (+)= the products' sums times rstd, or, where there is no rstd, dy's.
template <class T>
__global__ void weight_gradient_kernel(channel_sums sums, std::int64_t channels, const float* rstd,
                                       bool accumulate, T* gradient) {
  auto channel = thread_index();
  if (channel >= channels) return;
  auto total = sums.of(channel);
  auto value = static_cast<float>(rstd ? total.y * rstd[channel] : total.x);
  gradient[channel] = rounded<T>(accumulate ? as_float(gradient[channel]) + value : value);
}

void normalise(const batch_norm_problem& problem, const tensor& x, const tensor& mean, const tensor& rstd,
               const tensor& weight, const tensor& bias, tensor& y) {
  auto count = x.num_elements();
  with_floating(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch(x.device(), blocks_for(count), block_threads, affine_kernel<T>, problem, count, elements_of<T>(x),
           elements_of<float>(mean), elements_of<float>(rstd), floating_values(weight), floating_values(bias),
           elements_of<T>(y));
  });
}

void forward(const batch_norm_problem& problem, const tensor& x, const tensor& weight, const tensor& bias,
             const batch_norm_options& options, tensor& running_mean, tensor& running_variance,
             batch_norm_result& result) {
  auto count = static_cast<double>(problem.batch * problem.size);
  auto blocks = blocks_for(problem.channels);
  with_floating(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    auto sums = sums_over_channels(problem, x.device(), value_term<T>{elements_of<T>(x)});
    launch(x.device(), blocks, block_threads, mean_kernel, sums.sums, problem.channels, count,
           elements_of<float>(result.mean));
    auto squares = sums_over_channels(problem, x.device(),
                                      square_term<T>{elements_of<T>(x), elements_of<float>(result.mean)});
    running_statistics running{elements_of<float>(running_mean), elements_of<float>(running_variance),
                               options.momentum};
    launch(x.device(), blocks, block_threads, deviation_kernel, sums.sums, squares.sums, problem.channels,
           count, options.epsilon, running, elements_of<float>(result.rstd));
  });
  normalise(problem, x, result.mean, result.rstd, weight, bias, result.y);
}

void inference(const batch_norm_problem& problem, const tensor& x, const tensor& weight, const tensor& bias,
               const tensor& running_mean, const tensor& running_variance, double epsilon, tensor& y) {
  auto rstd = tensor::empty({problem.channels}, dtype::f32, x.device());
  launch(x.device(), blocks_for(problem.channels), block_threads, rstd_kernel,
         elements_of<float>(running_variance), problem.channels, epsilon, elements_of<float>(rstd));
  normalise(problem, x, running_mean, rstd, weight, bias, y);
}

template <class T>
channel_sum_memory gradient_sums(const batch_norm_problem& problem, const tensor& dy, const tensor& x,
                                 const tensor& mean) {
  return sums_over_channels(
      problem, x.device(), gradient_term<T>{elements_of<T>(dy), elements_of<T>(x), elements_of<float>(mean)});
}

void backward_input(const batch_norm_problem& problem, const tensor& dy, const tensor& x,
                    const tensor& weight, const tensor& mean, const tensor& rstd, tensor& dx) {
  auto count = x.num_elements();
  auto corrections = tensor::empty({problem.channels, 2}, dtype::f32, x.device());
  with_floating(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    auto sums = gradient_sums<T>(problem, dy, x, mean);
    launch(x.device(), blocks_for(problem.channels), block_threads, correction_kernel, sums.sums,
           problem.channels, static_cast<double>(problem.batch * problem.size), elements_of<float>(rstd),
           elements_of<float2>(corrections));
    const auto* found = elements_of<float2>(corrections);
    launch(x.device(), blocks_for(count), block_threads, input_gradient_kernel<T>, problem, count,
           elements_of<T>(dy), elements_of<T>(x), elements_of<float>(mean), elements_of<float>(rstd),
           floating_values(weight), found, elements_of<T>(dx));
  });
}

void store(const channel_sums& sums, const float* rstd, gradient_mode mode, tensor& gradient) {
  if (!gradient.defined()) return;
  auto channels = gradient.num_elements();
  with_floating(gradient.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch(gradient.device(), blocks_for(channels), block_threads, weight_gradient_kernel<T>, sums, channels,
           rstd, mode == gradient_mode::accumulate, elements_of<T>(gradient));
  });
}

void backward_weight(const batch_norm_problem& problem, const tensor& x, const tensor& dy, const tensor& mean,
                     const tensor& rstd, tensor& dweight, tensor& dbias, gradient_mode mode) {
  with_floating(x.dtype(), [&](auto zero) {
    auto sums = gradient_sums<decltype(zero)>(problem, dy, x, mean);
    store(sums.sums, elements_of<float>(rstd), mode, dweight);
    store(sums.sums, nullptr, mode, dbias);
  });
}

}  // namespace

batch_norm_kernels batch_norm() {
  return {.forward = forward,
          .inference = inference,
          .backward_input = backward_input,
          .backward_weight = backward_weight};
}

}  // namespace troupe::cuda
