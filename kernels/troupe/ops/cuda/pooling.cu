#include "troupe/ops/cuda/kernel_tables.hpp"
#include "troupe/ops/cuda/rows.cuh"

// One thread per element of the result. If windows overlap, a pixel's gradient is gathered from the windows
// that cover it, in an order that depends only on the options.

namespace troupe::cuda {
namespace {

/// Elements [begin, end) of windows or of pixels along one axis.
struct range {
  std::int64_t begin, end;
};

/// The pixels of window i that lie in an image of `in` of them.
__device__ range pixels_of(std::int64_t i, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                           std::int64_t in) {
  auto first = i * stride - padding;
  return {max(first, std::int64_t{0}), min(first + kernel, in)};
}

/// The windows of `out` that cover pixel `at`.
__device__ range windows_over(std::int64_t at, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                              std::int64_t out) {
  auto last = at + padding;
  auto begin = last < kernel ? std::int64_t{0} : (last - kernel) / stride + 1;
  return {begin, min(last / stride + 1, out)};
}

/// An element of planes of extents h x w.
struct place {
  std::int64_t plane, i, j;
};
__device__ place place_of(std::int64_t index, size_2d extents) {
  auto row = index / extents.w;
  return {row / extents.h, row % extents.h, index - row * extents.w};
}

__device__ std::int64_t thread_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

/// A later element replaces the maximum only if it is larger or NaN.
template <class T, class Index>
__global__ void max_kernel(pool2d_problem problem, std::int64_t count, const T* x, T* y, Index* indices) {
  auto index = thread_index();
  if (index >= count) return;
  const auto& options = problem.options;
  auto [plane, i, j] = place_of(index, problem.out);
  auto rows = pixels_of(i, options.kernel.h, options.stride.h, options.padding.h, problem.in.h);
  auto columns = pixels_of(j, options.kernel.w, options.stride.w, options.padding.w, problem.in.w);
  const auto* image = x + plane * problem.in.h * problem.in.w;
  auto best = as_float(image[rows.begin * problem.in.w + columns.begin]);
  auto best_row = rows.begin, best_column = columns.begin;
  for (auto row = rows.begin; row < rows.end; ++row)
    for (auto column = columns.begin; column < columns.end; ++column) {
      auto value = as_float(image[row * problem.in.w + column]);
      if (!(value > best || value != value)) continue;
      best = value;
      best_row = row;
      best_column = column;
    }
  y[index] = rounded<T>(best);
  auto top = i * options.stride.h - options.padding.h, left = j * options.stride.w - options.padding.w;
  indices[index] = static_cast<Index>((best_row - top) * options.kernel.w + best_column - left);
}

template <class T, class Index>
__global__ void max_gradient_kernel(pool2d_problem problem, std::int64_t count, const T* dy,
                                    const Index* indices, T* dx) {
  auto index = thread_index();
  if (index >= count) return;
  const auto& options = problem.options;
  auto [plane, row, column] = place_of(index, problem.in);
  auto is = windows_over(row, options.kernel.h, options.stride.h, options.padding.h, problem.out.h);
  auto js = windows_over(column, options.kernel.w, options.stride.w, options.padding.w, problem.out.w);
  auto first = plane * problem.out.h * problem.out.w;
  float total = 0;
  for (auto i = is.begin; i < is.end; ++i)
    for (auto j = js.begin; j < js.end; ++j) {
      auto tap = (row + options.padding.h - i * options.stride.h) * options.kernel.w + column +
                 options.padding.w - j * options.stride.w;
      auto window = first + i * problem.out.w + j;
      if (static_cast<std::int64_t>(indices[window]) == tap) total += as_float(dy[window]);
    }
  dx[index] = rounded<T>(total);
}

/// How many elements a window averages over.
__device__ float count_of(const pool2d_problem& problem, range rows, range columns) {
  const auto& options = problem.options;
  auto count = options.count_include_pad ? options.kernel.h * options.kernel.w
                                         : (rows.end - rows.begin) * (columns.end - columns.begin);
  return static_cast<float>(count);
}

template <class T>
__global__ void average_kernel(pool2d_problem problem, std::int64_t count, const T* x, T* y) {
  auto index = thread_index();
  if (index >= count) return;
  const auto& options = problem.options;
  auto [plane, i, j] = place_of(index, problem.out);
  auto rows = pixels_of(i, options.kernel.h, options.stride.h, options.padding.h, problem.in.h);
  auto columns = pixels_of(j, options.kernel.w, options.stride.w, options.padding.w, problem.in.w);
  const auto* image = x + plane * problem.in.h * problem.in.w;
  float total = 0;
  for (auto row = rows.begin; row < rows.end; ++row)
    for (auto column = columns.begin; column < columns.end; ++column)
      total += as_float(image[row * problem.in.w + column]);
  y[index] = rounded<T>(total / count_of(problem, rows, columns));
}

template <class T>
__global__ void average_gradient_kernel(pool2d_problem problem, std::int64_t count, const T* dy, T* dx) {
  auto index = thread_index();
  if (index >= count) return;
  const auto& options = problem.options;
  auto [plane, row, column] = place_of(index, problem.in);
  auto is = windows_over(row, options.kernel.h, options.stride.h, options.padding.h, problem.out.h);
  auto js = windows_over(column, options.kernel.w, options.stride.w, options.padding.w, problem.out.w);
  const auto* windows = dy + plane * problem.out.h * problem.out.w;
  float total = 0;
  for (auto i = is.begin; i < is.end; ++i)
    for (auto j = js.end; j-- > js.begin;) {
      auto rows = pixels_of(i, options.kernel.h, options.stride.h, options.padding.h, problem.in.h);
      auto columns = pixels_of(j, options.kernel.w, options.stride.w, options.padding.w, problem.in.w);
      total += as_float(windows[i * problem.out.w + j]) / count_of(problem, rows, columns);
    }
  dx[index] = rounded<T>(total);
}

template <class T>
__global__ void __launch_bounds__(row_threads) plane_average_kernel(row_layout layout, const T* x, T* y) {
  auto total = reduce_row<sum>(x + blockIdx.x * layout.size, layout, 0, [](float value) { return value; });
  if (threadIdx.x == 0) y[blockIdx.x] = rounded<T>(total / static_cast<float>(layout.size));
}

template <class T>
__global__ void spread_kernel(std::int64_t count, std::int64_t size, const T* dy, T* dx) {
  auto index = thread_index();
  if (index < count) dx[index] = rounded<T>(as_float(dy[index / size]) / static_cast<float>(size));
}

/// Calls `visit` with a value of the indices' type, u8 or i32.
template <class Visit>
void with_index_type(const tensor& indices, const Visit& visit) {
  if (indices.dtype() == dtype::u8) return visit(std::uint8_t{});
  visit(std::int32_t{});
}

void max_forward(const pool2d_problem& problem, const tensor& x, tensor& y, tensor& indices) {
  auto count = y.num_elements();
  with_floating(x.dtype(), [&](auto zero) {
    with_index_type(indices, [&](auto index) {
      using T = decltype(zero);
      using Index = decltype(index);
      launch(x.device(), blocks_for(count), block_threads, max_kernel<T, Index>, problem, count,
             elements_of<T>(x), elements_of<T>(y), elements_of<Index>(indices));
    });
  });
}

void max_backward(const pool2d_problem& problem, const tensor& dy, const tensor& indices, tensor& dx) {
  auto count = dx.num_elements();
  with_floating(dy.dtype(), [&](auto zero) {
    with_index_type(indices, [&](auto index) {
      using T = decltype(zero);
      using Index = decltype(index);
      launch(dy.device(), blocks_for(count), block_threads, max_gradient_kernel<T, Index>, problem, count,
             elements_of<T>(dy), elements_of<Index>(indices), elements_of<T>(dx));
    });
  });
}

void average_forward(const pool2d_problem& problem, const tensor& x, tensor& y) {
  auto count = y.num_elements();
  with_floating(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch(x.device(), blocks_for(count), block_threads, average_kernel<T>, problem, count, elements_of<T>(x),
           elements_of<T>(y));
  });
}

void average_backward(const pool2d_problem& problem, const tensor& dy, tensor& dx) {
  auto count = dx.num_elements();
  with_floating(dy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch(dy.device(), blocks_for(count), block_threads, average_gradient_kernel<T>, problem, count,
           elements_of<T>(dy), elements_of<T>(dx));
  });
}

void global_average_forward(std::int64_t planes, std::int64_t size, const tensor& x, tensor& y) {
  auto rows_aligned = size * static_cast<std::int64_t>(size_bytes(x.dtype())) % 16 == 0;
  row_layout layout{size, rows_aligned && is_aligned(x)};
  with_floating(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch_rows<T>(x.device(), planes, layout, plane_average_kernel<T>, elements_of<T>(x), elements_of<T>(y));
  });
}

void global_average_backward(std::int64_t planes, std::int64_t size, const tensor& dy, tensor& dx) {
  auto count = planes * size;
  with_floating(dy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch(dy.device(), blocks_for(count), block_threads, spread_kernel<T>, count, size, elements_of<T>(dy),
           elements_of<T>(dx));
  });
}

}  // namespace

pooling_kernels pooling() {
  return {.max_forward = max_forward,
          .max_backward = max_backward,
          .average_forward = average_forward,
          .average_backward = average_backward,
          .global_average_forward = global_average_forward,
          .global_average_backward = global_average_backward};
}

}  // namespace troupe::cuda
