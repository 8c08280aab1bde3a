#include "troupe/ops/cuda/floating_values.cuh"
#include "troupe/ops/cuda/kernel_tables.hpp"
#include "troupe/ops/cuda/rows.cuh"
#include "troupe/ops/cuda/sums_over_rows.cuh"

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
  const T *dy, *x;
  const float *mean, *rstd;
  std::int64_t columns;
  __device__ float2 operator()(std::int64_t row, std::int64_t column) const {
    auto at = row * columns + column;
    auto g = as_float(dy[at]);
    return {g * ((as_float(x[at]) - (mean ? mean[row] : 0)) * rstd[row]), g};
  }
};

void forward(const tensor& x, const tensor& gamma, const tensor& beta, double eps, tensor& y, tensor& mean,
             tensor& rstd) {
  with_floating(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch_rows<T>(x.device(), num_rows(x), layout_of_rows(x, y), forward_kernel<T>, elements_of<T>(x),
                   floating_values(gamma), floating_values(beta), static_cast<float>(eps), elements_of<T>(y),
                   elements_of<float>(mean), elements_of<float>(rstd));
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
    auto sums = sums_over_rows<float2>(num_rows(x), columns, x.device(), terms);
    if (dgamma.defined()) store_sums<float2>(sums, 0, dgamma, mode);
    if (dbeta.defined()) store_sums<float2>(sums, 1, dbeta, mode);
  });
}

}  // namespace

norm_kernels norm() {
  return {.forward = forward, .backward_input = backward_input, .backward_weight = backward_weight};
}

}  // namespace troupe::cuda
