#include "troupe/ops/cuda/kernel_tables.hpp"
#include "troupe/ops/cuda/loops/floating_values.cuh"
#include "troupe/ops/cuda/loops/rows.cuh"
#include "troupe/ops/cuda/loops/sums_over_rows.cuh"

// Layer normalisation, and without a mean, which is then 0, RMS normalisation.

namespace troupe::cuda {
namespace {

template <class T>
__global__ void __launch_bounds__(row_threads)
    forward_kernel(row_layout layout, const T* x, floating_values gamma, floating_values beta, float eps,
                   T* y, float* mean, float* rstd) {
  x += blockIdx.x * layout.size;
  auto size = static_cast<float>(layout.size);
  auto center = mean ? reduce_row<sum>(x, layout, 0, [](float value) { return value; }) / size : 0;
  // Lanes beyond the end hold the mean, and so contribute 0.
  auto squares =
      reduce_row<sum>(x, layout, center, [=](float value) { return (value - center) * (value - center); });
  auto factor = 1 / sqrtf(squares / size + eps);
  map_row(x, y + blockIdx.x * layout.size, layout, [=](std::int64_t i, float value) {
    return i < layout.size ? (value - center) * factor * gamma.at(i, 1) + beta.at(i, 0) : 0;
  });
  if (threadIdx.x > 0) return;
  if (mean) mean[blockIdx.x] = center;
  rstd[blockIdx.x] = factor;
}

/// The packs of a row that a thread of forward_by_warps keeps in registers.
constexpr int packs_per_lane = 8;

/// As forward_kernel, for aligned rows of at most packs_per_lane packs for each thread of a warp: a warp per
/// row, which it reads once.
template <class T>
__global__ void __launch_bounds__(block_threads)
    forward_by_warps(row_layout layout, std::int64_t num_rows, const T* x, floating_values gamma,
                     floating_values beta, float eps, T* y, float* mean, float* rstd) {
  auto row = (static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x) / warp_threads;
  if (row >= num_rows) return;
  auto lane = threadIdx.x % warp_threads;
  auto first = [=](int index) { return (index * warp_threads + lane) * std::int64_t{pack<T>::size}; };
  auto size = static_cast<float>(layout.size);
  lanes_of<T> values[packs_per_lane];
#pragma unroll
  for (int at = 0; at < packs_per_lane; ++at)
    if (first(at) < layout.size)
      values[at] = read_lanes(x + row * layout.size, first(at), {layout.size, true}, 0);
  auto sum_of = [&](auto term) {
    float total = 0;
#pragma unroll
    for (int at = 0; at < packs_per_lane; ++at)
      if (first(at) < layout.size)
#pragma unroll
        for (float value : values[at].lane) total += term(value);
    return reduce_warp<sum>(total);
  };
  auto center = mean ? sum_of([](float value) { return value; }) / size : 0;
  auto squares = sum_of([=](float value) { return (value - center) * (value - center); });
  auto factor = 1 / sqrtf(squares / size + eps);
#pragma unroll
  for (int at = 0; at < packs_per_lane; ++at)
    if (first(at) < layout.size) {
      lanes_of<T> weights, biases;
      gamma.read(first(at), 1, weights.lane);
      beta.read(first(at), 0, biases.lane);
#pragma unroll
      for (int i = 0; i < weights.size; ++i)
        values[at].lane[i] = (values[at].lane[i] - center) * factor * weights.lane[i] + biases.lane[i];
      write_lanes(y + row * layout.size, first(at), {layout.size, true}, values[at]);
    }
  if (lane > 0) return;
  if (mean) mean[row] = center;
  rstd[row] = factor;
}

template <class T>
__global__ void __launch_bounds__(row_threads)
    backward_input_kernel(row_layout layout, const T* dy, const T* x, floating_values gamma,
                          const float* mean, const float* rstd, T* dx) {
  auto start = blockIdx.x * layout.size;
  auto center = mean ? mean[blockIdx.x] : 0, factor = rstd[blockIdx.x];
  auto size = static_cast<float>(layout.size);
  auto weight = [=](std::int64_t i) { return i < layout.size ? gamma.at(i, 1) : 0; };
  auto mean_g = mean ? reduce_rows<sum>(dy + start, x + start, layout,
                                        [=](std::int64_t i, float g, float) { return g * weight(i); }) /
                           size
                     : 0;
  auto mean_g_n = reduce_rows<sum>(dy + start, x + start, layout,
                                   [=](std::int64_t i, float g, float value) {
                                     return g * weight(i) * ((value - center) * factor);
                                   }) /
                  size;
  map_rows(dy + start, x + start, dx + start, layout, [=](std::int64_t i, float g, float value) {
    return factor * (g * weight(i) - mean_g - (value - center) * factor * mean_g_n);
  });
}

/// A row's contribution to dgamma and dbeta.
template <class T>
struct weight_terms {
  static constexpr int columns_in_pack = pack<T>::size;
  const T *dy, *x;
  const float *mean, *rstd;
  std::int64_t columns;

  template <int Columns>
  __device__ void operator()(std::int64_t row, std::int64_t column, float2 (&terms)[Columns]) const {
    float g[Columns], values[Columns];
    read_columns(dy + row * columns + column, g);
    read_columns(x + row * columns + column, values);
    auto center = mean ? mean[row] : 0, factor = rstd[row];
#pragma unroll
    for (int i = 0; i < Columns; ++i) terms[i] = {g[i] * ((values[i] - center) * factor), g[i]};
  }
};

void forward(const tensor& x, const tensor& gamma, const tensor& beta, double eps, tensor& y, tensor& mean,
             tensor& rstd) {
  with_floating(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    auto layout = layout_of_rows(x, y);
    auto rows = num_rows(x);
    auto weights = floating_values(gamma), biases = floating_values(beta);
    auto epsilon = static_cast<float>(eps);
    const auto* from = elements_of<T>(x);
    auto* to = elements_of<T>(y);
    auto *of_means = elements_of<float>(mean), *of_rstds = elements_of<float>(rstd);
    if (layout.are_aligned && layout.size <= packs_per_lane * warp_threads * pack<T>::size)
      launch(x.device(), blocks_for(rows * warp_threads), block_threads, forward_by_warps<T>, layout, rows,
             from, weights, biases, epsilon, to, of_means, of_rstds);
    else
      launch_rows<T>(x.device(), rows, layout, forward_kernel<T>, from, weights, biases, epsilon, to,
                     of_means, of_rstds);
  });
}

void backward_input(const tensor& dy, const tensor& x, const tensor& gamma, const tensor& mean,
                    const tensor& rstd, tensor& dx) {
  with_floating(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch_rows<T>(x.device(), num_rows(x), layout_of_rows(x, dy, dx), backward_input_kernel<T>,
                   elements_of<T>(dy), elements_of<T>(x), floating_values(gamma), elements_of<float>(mean),
                   elements_of<float>(rstd), elements_of<T>(dx));
  });
}

void backward_weight(const tensor& dy, const tensor& x, const tensor& mean, const tensor& rstd,
                     tensor& dgamma, tensor& dbeta, gradient_mode mode) {
  auto columns = x.shape()[-1];
  with_floating(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    weight_terms<T> terms{elements_of<T>(dy), elements_of<T>(x), elements_of<float>(mean),
                          elements_of<float>(rstd), columns};
    auto sums =
        sums_over_rows<float2>(num_rows(x), columns, x.device(), layout_of_rows(x, dy).are_aligned, terms);
    if (dgamma.defined()) store_sums<float2>(sums, 0, dgamma, mode);
    if (dbeta.defined()) store_sums<float2>(sums, 1, dbeta, mode);
  });
}

}  // namespace

norm_kernels norm() {
  return {.forward = forward, .backward_input = backward_input, .backward_weight = backward_weight};
}

}  // namespace troupe::cuda
