#include "troupe/ops/cuda/kernel_tables.hpp"
#include "troupe/ops/cuda/loops/softmax_row.cuh"

namespace troupe::cuda {
namespace {

template <class T, bool is_log>
__global__ void __launch_bounds__(softmax_threads) softmax_kernel(row_layout layout, const T* x, T* y) {
  x += blockIdx.x * layout.size;
  y += blockIdx.x * layout.size;
  auto scores = softmax_of_row(x, layout);
  auto top = scores.largest, total = scores.total;
  if constexpr (is_log) {
    auto log_sum = logf(total);
    map_row(x, y, layout, [=](std::int64_t, float z) { return z - top - log_sum; });
  } else {
    auto factor = 1 / total;
    map_row(x, y, layout, [=](std::int64_t, float z) { return expf(z - top) * factor; });
  }
}

template <class T>
__global__ void __launch_bounds__(row_threads)
    softmax_gradient_kernel(row_layout layout, const T* dy, const T* y, T* dx) {
  auto start = blockIdx.x * layout.size;
  auto product =
      reduce_rows<sum>(dy + start, y + start, layout, [](std::int64_t, float g, float p) { return g * p; });
  map_rows(dy + start, y + start, dx + start, layout,
           [=](std::int64_t, float g, float p) { return p * (g - product); });
}

template <class T>
__global__ void __launch_bounds__(row_threads)
    log_softmax_gradient_kernel(row_layout layout, const T* dy, const T* y, T* dx) {
  auto start = blockIdx.x * layout.size;
  auto total = reduce_row<sum>(dy + start, layout, 0, [](float g) { return g; });
  map_rows(dy + start, y + start, dx + start, layout,
           [=](std::int64_t, float g, float log_p) { return g - expf(log_p) * total; });
}

template <bool is_log>
void forward(const tensor& x, tensor& y) {
  with_floating(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch_rows<T, softmax_threads>(x.device(), num_rows(x), layout_of_rows(x, y), softmax_kernel<T, is_log>,
                                    elements_of<T>(x), elements_of<T>(y));
  });
}

template <bool is_log>
void backward(const tensor& dy, const tensor& y, tensor& dx) {
  with_floating(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch_rows<T>(y.device(), num_rows(y), layout_of_rows(y, dy, dx),
                   is_log ? log_softmax_gradient_kernel<T> : softmax_gradient_kernel<T>, elements_of<T>(dy),
                   elements_of<T>(y), elements_of<T>(dx));
  });
}

}  // namespace

softmax_kernels softmax() {
  return {.softmax_forward = forward<false>,
          .softmax_backward = backward<false>,
          .log_softmax_forward = forward<true>,
          .log_softmax_backward = backward<true>};
}

}  // namespace troupe::cuda
