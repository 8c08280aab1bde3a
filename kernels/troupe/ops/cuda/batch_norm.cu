#include "troupe/ops/cuda/kernel_tables.hpp"
#include "troupe/ops/cuda/loops/channel_sums.cuh"
#include "troupe/ops/cuda/loops/floating_values.cuh"
#include "troupe/ops/cuda/loops/map_channels.cuh"

namespace troupe::cuda {
namespace {

/// Two sums, of deviations and of their squares, from the channel's first element. Each run's are taken from
/// its own first element, in f32, and moved in f64: the variance is right however far the mean is from zero,
/// and x is read once.
template <class T>
struct moments_term : value_term<T> {
  std::int64_t size;

  __device__ double origin(std::int64_t channel) const { return as_float(this->x[channel * size]); }

  template <class Run>
  __device__ double2 sum_of(const Run& run, std::int64_t channel) const {
    auto first = run.vectors[0].x[0];
    float sum = 0, squares = 0;
    run.for_each([&](const auto& each, int lane) {
      auto deviation = each.x[lane] - first;
      sum += deviation;
      squares += deviation * deviation;
    });
    double shift = first - origin(channel), count = run.num_elements();
    return {sum + count * shift, squares + 2 * shift * sum + count * shift * shift};
  }
};

/// dy and dy (x - mean)
template <class T>
struct gradient_term {
  static constexpr int lanes = pack<T>::size;
  template <int Lanes>
  struct vector {
    float dy[Lanes], x[Lanes];
  };
  const T *dy, *x;
  const float* mean;

  template <bool IsAligned, int Lanes>
  __device__ void load(std::int64_t offset, vector<Lanes>& to) const {
    read_vector<IsAligned>(dy + offset, to.dy);
    read_vector<IsAligned>(x + offset, to.x);
  }
  template <class Run>
  __device__ double2 sum_of(const Run& run, std::int64_t channel) const {
    auto center = mean[channel];
    float sum = 0, products = 0;
    run.for_each([&](const auto& each, int lane) {
      sum += each.dy[lane];
      products += each.dy[lane] * (each.x[lane] - center);
    });
    return {sum, products};
  }
};

struct running_statistics {
  float *mean, *variance;  ///< [C] running statistics to update; null: none
  double momentum;
};

/// A warp per channel, as in the kernels below that add up parts.
template <class T>
__global__ void moments_kernel(channel_sums sums, moments_term<T> term, std::int64_t channels, double count,
                               double epsilon, running_statistics running, float* mean, float* rstd) {
  auto channel = channel_of_warp();
  if (channel >= channels) return;
  auto total = sums.of(channel);
  if (threadIdx.x % warp_threads > 0) return;
  auto average = term.origin(channel) + total.x / count;
  auto square = total.y - total.x * (total.x / count);
  if (square < 0) square = 0;  // by rounding
  mean[channel] = static_cast<float>(average);
  rstd[channel] = static_cast<float>(1 / sqrt(square / count + epsilon));
  if (!running.mean) return;
  auto keep = 1 - running.momentum;
  running.mean[channel] = static_cast<float>(keep * running.mean[channel] + running.momentum * average);
  running.variance[channel] =
      static_cast<float>(keep * running.variance[channel] + running.momentum * (square / (count - 1)));
}

/// One thread per channel.
__global__ void rstd_kernel(const float* variance, std::int64_t channels, double epsilon, float* rstd) {
  auto channel = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (channel < channels) rstd[channel] = static_cast<float>(1 / sqrt(variance[channel] + epsilon));
}

/// y = (x - mean) rstd weight + bias
struct normalisation {
  float mean, scale, bias;
  __device__ float operator()(float x) const { return (x - mean) * scale + bias; }
};
struct normalisation_of_channel {
  const float *mean, *rstd;
  floating_values weight, bias;
  __device__ normalisation operator()(std::int64_t channel) const {
    return {mean[channel], rstd[channel] * weight.at(channel, 1), bias.at(channel, 0)};
  }
};

/// The terms subtracted from dy in each channel: its average, and a slope times the deviation from the mean.
__global__ void correction_kernel(channel_sums sums, std::int64_t channels, double count, const float* rstd,
                                  float2* corrections) {
  auto channel = channel_of_warp();
  if (channel >= channels) return;
  auto total = sums.of(channel);
  if (threadIdx.x % warp_threads > 0) return;
  double deviation = rstd[channel];
  corrections[channel] = {static_cast<float>(total.x / count),
                          static_cast<float>(deviation * deviation * total.y / count)};
}

struct input_gradient {
  float mean, scale, average, slope;
  __device__ float operator()(float dy, float x) const {
    return ((dy - average) - (x - mean) * slope) * scale;
  }
};
struct input_gradient_of_channel {
  const float *mean, *rstd;
  floating_values weight;
  const float2* corrections;
  __device__ input_gradient operator()(std::int64_t channel) const {
    auto [average, slope] = corrections[channel];
    return {mean[channel], rstd[channel] * weight.at(channel, 1), average, slope};
  }
};

/// gradient (+)= the products' sums times rstd, or, where there is no rstd, dy's.
template <class T>
__global__ void weight_gradient_kernel(channel_sums sums, std::int64_t channels, const float* rstd,
                                       bool accumulate, T* gradient) {
  auto channel = channel_of_warp();
  if (channel >= channels) return;
  auto total = sums.of(channel);
  if (threadIdx.x % warp_threads > 0) return;
  auto value = static_cast<float>(rstd ? total.y * rstd[channel] : total.x);
  gradient[channel] = rounded<T>(accumulate ? as_float(gradient[channel]) + value : value);
}

void normalise(const batch_norm_problem& problem, const tensor& x, const tensor& mean, const tensor& rstd,
               const tensor& weight, const tensor& bias, tensor& y) {
  normalisation_of_channel of_channel{elements_of<float>(mean), elements_of<float>(rstd),
                                      floating_values(weight), floating_values(bias)};
  map_channels(problem, of_channel, y, x);
}

void forward(const batch_norm_problem& problem, const tensor& x, const tensor& weight, const tensor& bias,
             const batch_norm_options& options, tensor& running_mean, tensor& running_variance,
             batch_norm_result& result) {
  with_floating(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    moments_term<T> term{{elements_of<T>(x)}, problem.size};
    auto sums = sums_over_channels(problem, x.device(), is_aligned(x), term);
    running_statistics running{elements_of<float>(running_mean), elements_of<float>(running_variance),
                               options.momentum};
    launch(x.device(), blocks_of_warps(problem.channels), block_threads, moments_kernel<T>, sums.sums, term,
           problem.channels, static_cast<double>(problem.batch * problem.size), options.epsilon, running,
           elements_of<float>(result.mean), elements_of<float>(result.rstd));
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
  gradient_term<T> term{elements_of<T>(dy), elements_of<T>(x), elements_of<float>(mean)};
  return sums_over_channels(problem, x.device(), is_aligned(dy) && is_aligned(x), term);
}

void backward_input(const batch_norm_problem& problem, const tensor& dy, const tensor& x,
                    const tensor& weight, const tensor& mean, const tensor& rstd, tensor& dx) {
  auto corrections = tensor::empty({problem.channels, 2}, dtype::f32, x.device());
  with_floating(x.dtype(), [&](auto zero) {
    auto sums = gradient_sums<decltype(zero)>(problem, dy, x, mean);
    launch(x.device(), blocks_of_warps(problem.channels), block_threads, correction_kernel, sums.sums,
           problem.channels, static_cast<double>(problem.batch * problem.size), elements_of<float>(rstd),
           elements_of<float2>(corrections));
  });
  input_gradient_of_channel of_channel{elements_of<float>(mean), elements_of<float>(rstd),
                                       floating_values(weight), elements_of<float2>(corrections)};
  map_channels(problem, of_channel, dx, dy, x);
}

void store(const channel_sums& sums, const float* rstd, gradient_mode mode, tensor& gradient) {
  if (!gradient.defined()) return;
  auto channels = gradient.num_elements();
  with_floating(gradient.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch(gradient.device(), blocks_of_warps(channels), block_threads, weight_gradient_kernel<T>, sums,
           channels, rstd, mode == gradient_mode::accumulate, elements_of<T>(gradient));
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
