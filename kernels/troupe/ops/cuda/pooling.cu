#include "troupe/error/errors.hpp"
#include "troupe/ops/cuda/kernel_tables.hpp"
#include "troupe/ops/cuda/loops/floating_values.cuh"
#include "troupe/ops/cuda/loops/map_channels.cuh"
#include "troupe/ops/cuda/loops/rows.cuh"

// Forward, one thread per window. Backward, one thread per pack of pixels, which gathers the gradient from
// the windows that cover any of them, each read once, in an order that depends only on the options.

namespace troupe::cuda {
namespace {

/// Elements [begin, end) of windows or of pixels along one axis.
struct range {
  int begin, end;
};

/// The windows along one axis of an image.
struct window_axis {
  int kernel, stride, padding, in, out;
  divisor<int> by_stride;

  /// The first pixel of window i, which may lie in the padding.
  __device__ int first_of(int i) const { return i * stride - padding; }

  /// The pixels of window i that lie in the image.
  __device__ range pixels_of(int i) const { return {max(first_of(i), 0), min(first_of(i) + kernel, in)}; }

  /// The windows that cover any of `pixels`.
  __device__ range windows_over(range pixels) const {
    auto behind = pixels.begin + padding - kernel;  // in the padded image; windows from there on reach them
    auto begin = behind < 0 ? 0 : by_stride.quotient(behind) + 1;
    return {begin, min(by_stride.quotient(pixels.end - 1 + padding) + 1, out)};
  }
};

/// An element of planes of extents h x w.
struct place {
  std::int64_t plane;
  int i, j;
};
struct plane_extents {
  explicit plane_extents(size_2d extents)
      : h(static_cast<int>(extents.h)), w(static_cast<int>(extents.w)), by_h(extents.h), by_w(extents.w) {}

  __device__ place place_of(std::int64_t index) const {
    auto row = by_w.quotient(index), plane = by_h.quotient(row);
    return {plane, static_cast<int>(row - plane * h), static_cast<int>(index - row * w)};
  }

  int h, w;
  divisor<std::int64_t> by_h, by_w;
};

struct pooling_windows {
  window_axis rows, columns;
  plane_extents in, out;
  bool count_include_pad;

  /// How many elements a window averages over.
  __device__ float count_of(range in_rows, range in_columns) const {
    if (count_include_pad) return static_cast<float>(rows.kernel) * static_cast<float>(columns.kernel);
    return static_cast<float>(in_rows.end - in_rows.begin) *
           static_cast<float>(in_columns.end - in_columns.begin);
  }
};

window_axis axis_of(std::int64_t kernel, std::int64_t stride, std::int64_t padding, std::int64_t in,
                    std::int64_t out) {
  constexpr auto longest = std::int64_t{1} << 30;
  if (in + padding + kernel > longest)
    throw_invalid("pooling", "extents and windows of at most 2^30 pixels on a GPU",
                  std::to_string(in) + " pixels and a kernel of " + std::to_string(kernel));
  stride = std::min(stride, longest);  // larger only if there is a single window
  return {static_cast<int>(kernel), static_cast<int>(stride), static_cast<int>(padding),
          static_cast<int>(in),     static_cast<int>(out),    divisor<int>(static_cast<int>(stride))};
}

pooling_windows windows_of(const pool2d_problem& problem) {
  const auto& [kernel, stride, padding, include] = problem.options;
  return {axis_of(kernel.h, stride.h, padding.h, problem.in.h, problem.out.h),
          axis_of(kernel.w, stride.w, padding.w, problem.in.w, problem.out.w), plane_extents(problem.in),
          plane_extents(problem.out), include};
}

__device__ std::int64_t thread_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

/// A later element replaces the maximum only if it is larger or NaN.
template <class T, class Index>
__global__ void max_kernel(pooling_windows windows, std::int64_t count, const T* x, T* y, Index* indices) {
  auto index = thread_index();
  if (index >= count) return;
  auto [plane, i, j] = windows.out.place_of(index);
  auto rows = windows.rows.pixels_of(i), columns = windows.columns.pixels_of(j);
  const auto* image = x + plane * windows.in.h * windows.in.w;
  auto pixel = [&](int row, int column) {
    return as_float(image[std::int64_t{row} * windows.in.w + column]);
  };
  auto best = pixel(rows.begin, columns.begin);
  auto best_row = rows.begin, best_column = columns.begin;
  for (auto row = rows.begin; row < rows.end; ++row)
    for (auto column = columns.begin; column < columns.end; ++column) {
      auto value = pixel(row, column);
      if (!(value > best || value != value)) continue;
      best = value;
      best_row = row;
      best_column = column;
    }
  y[index] = rounded<T>(best);
  indices[index] = static_cast<Index>((best_row - windows.rows.first_of(i)) * windows.columns.kernel +
                                      best_column - windows.columns.first_of(j));
}

template <class T>
__global__ void average_kernel(pooling_windows windows, std::int64_t count, const T* x, T* y) {
  auto index = thread_index();
  if (index >= count) return;
  auto [plane, i, j] = windows.out.place_of(index);
  auto rows = windows.rows.pixels_of(i), columns = windows.columns.pixels_of(j);
  const auto* image = x + plane * windows.in.h * windows.in.w;
  float total = 0;
  for (auto row = rows.begin; row < rows.end; ++row)
    for (auto column = columns.begin; column < columns.end; ++column)
      total += as_float(image[std::int64_t{row} * windows.in.w + column]);
  y[index] = rounded<T>(total / windows.count_of(rows, columns));
}

/// A window, its place in its plane, and the pixels of a pack: of line `row`, with column `left` in lane 0.
struct window_over_pack {
  std::int64_t index;
  int i, j, row, left;
};

/// What a window adds to lanes of a pack; bit n of `lanes` stands for lane n.
struct window_share {
  float value;
  unsigned lanes;
};

/// A window's gradient goes to the pixel of its maximum.
template <class T, class Index>
struct max_shares {
  static constexpr bool last_column_first = false;
  const T* dy;
  const Index* indices;

  __device__ window_share share_of(const pooling_windows& windows, window_over_pack window) const {
    auto tap_of_row = (window.row - windows.rows.first_of(window.i)) * windows.columns.kernel;
    auto column_in_window = static_cast<int>(indices[window.index]) - tap_of_row;
    auto lane = windows.columns.first_of(window.j) + column_in_window - window.left;
    auto is_here = column_in_window >= 0 && column_in_window < windows.columns.kernel && lane >= 0 &&
                   lane < pack<T>::size;
    return {as_float(dy[window.index]), is_here ? 1U << lane : 0U};
  }

  /// What a window of 2 x 2 adds to the two pixels of its line 0 or 1.
  __device__ float2 of_2x2(std::int64_t index, int line) const {
    auto tap = static_cast<int>(indices[index]) - 2 * line;
    auto value = as_float(dy[index]);
    return {tap == 0 ? value : 0, tap == 1 ? value : 0};
  }
};

/// A window's gradient goes to all its pixels.
template <class T>
struct average_shares {
  static constexpr bool last_column_first = true;
  const T* dy;

  __device__ window_share share_of(const pooling_windows& windows, window_over_pack window) const {
    auto rows = windows.rows.pixels_of(window.i), columns = windows.columns.pixels_of(window.j);
    auto begin = max(columns.begin - window.left, 0), end = min(columns.end - window.left, pack<T>::size);
    return {as_float(dy[window.index]) / windows.count_of(rows, columns), (1U << end) - (1U << begin)};
  }

  __device__ float2 of_2x2(std::int64_t index, int) const {
    auto value = as_float(dy[index]) / 4;
    return {value, value};
  }
};

/// For windows of 2 x 2 without overlap or padding, and lines of whole packs: which lanes are a window's is
/// known when this is compiled.
template <class T, class Shares>
__global__ void gradient_kernel_of_2x2(pooling_windows windows, std::int64_t count, Shares shares, T* dx) {
  constexpr int lanes = pack<T>::size;
  auto first = thread_index() * lanes;
  if (first >= count) return;
  auto [plane, row, column] = windows.in.place_of(first);
  auto index = (plane * windows.out.h + row / 2) * windows.out.w + column / 2;
  pack<T> to{};
  if (row < 2 * windows.out.h) {  // the last of an odd number of lines is in no window
#pragma unroll
    for (int lane = 0; lane < lanes; lane += 2) {
      auto pair = shares.of_2x2(index + lane / 2, row % 2);
      to.lanes[lane] = rounded<T>(0.0F + pair.x);  // no sum is -0
      to.lanes[lane + 1] = rounded<T>(0.0F + pair.y);
    }
  }
  store_pack(dx + first, to);
}

template <class T, class Shares>
__global__ void gradient_kernel(pooling_windows windows, std::int64_t count, bool is_aligned, Shares shares,
                                T* dx) {
  constexpr int lanes = pack<T>::size;
  auto first = thread_index() * lanes;
  if (first >= count) return;
  auto filled = static_cast<int>(min(count - first, std::int64_t{lanes}));
  auto [plane, row, column] = windows.in.place_of(first);
  float sums[lanes] = {};
  // A pack may reach into the lines that follow.
  for (auto left = column; left + filled > 0; left -= windows.in.w) {
    if (row == windows.in.h) {
      row = 0;
      ++plane;
    }
    auto is = windows.rows.windows_over({row, row + 1});
    auto js = windows.columns.windows_over({max(left, 0), min(left + lanes, windows.in.w)});
    for (auto i = is.begin; i < is.end; ++i) {
      auto line = (plane * windows.out.h + i) * windows.out.w;
      for (auto next = js.begin; next < js.end; ++next) {
        auto j = Shares::last_column_first ? js.begin + js.end - 1 - next : next;
        auto share = shares.share_of(windows, {line + j, i, j, row, left});
#pragma unroll
        for (int lane = 0; lane < lanes; ++lane)
          if (share.lanes >> lane & 1U) sums[lane] += share.value;
      }
    }
    ++row;
  }
  pack<T> to;
#pragma unroll
  for (int lane = 0; lane < lanes; ++lane) to.lanes[lane] = rounded<T>(sums[lane]);
  if (is_aligned && filled == lanes) return store_pack(dx + first, to);
#pragma unroll
  for (int lane = 0; lane < lanes; ++lane)
    if (lane < filled) dx[first + lane] = to.lanes[lane];
}

template <class T>
__global__ void __launch_bounds__(row_threads) plane_average_kernel(row_layout layout, const T* x, T* y) {
  auto total = reduce_row<sum>(x + blockIdx.x * layout.size, layout, 0, [](float value) { return value; });
  if (threadIdx.x == 0) y[blockIdx.x] = rounded<T>(total / static_cast<float>(layout.size));
}

/// An element of dy for each plane, over its size.
struct plane_share {
  float value;
  __device__ float operator()() const { return value; }
};
struct share_of_plane {
  floating_values dy;
  float size;
  __device__ plane_share operator()(std::int64_t plane) const { return {dy.at(plane, 0) / size}; }
};

/// Calls `visit` with a value of the indices' type, u8 or i32.
template <class Visit>
void with_index_type(const tensor& indices, const Visit& visit) {
  if (indices.dtype() == dtype::u8) return visit(std::uint8_t{});
  visit(std::int32_t{});
}

void max_forward(const pool2d_problem& problem, const tensor& x, tensor& y, tensor& indices) {
  auto count = y.num_elements();
  if (count == 0) return;
  with_floating(x.dtype(), [&](auto zero) {
    with_index_type(indices, [&](auto index) {
      using T = decltype(zero);
      using Index = decltype(index);
      launch(x.device(), blocks_for(count), block_threads, max_kernel<T, Index>, windows_of(problem), count,
             elements_of<T>(x), elements_of<T>(y), elements_of<Index>(indices));
    });
  });
}

void average_forward(const pool2d_problem& problem, const tensor& x, tensor& y) {
  auto count = y.num_elements();
  if (count == 0) return;
  with_floating(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch(x.device(), blocks_for(count), block_threads, average_kernel<T>, windows_of(problem), count,
           elements_of<T>(x), elements_of<T>(y));
  });
}

template <class T, class Shares>
void gather(const pool2d_problem& problem, Shares shares, tensor& dx) {
  auto count = dx.num_elements();
  if (count == 0) return;
  auto windows = windows_of(problem);
  auto blocks = blocks_for((count + pack<T>::size - 1) / pack<T>::size);
  const auto& [kernel, stride, padding, include] = problem.options;
  constexpr size_2d two{2, 2};
  if (kernel == two && stride == two && padding == size_2d{0, 0} && problem.in.w % pack<T>::size == 0 &&
      is_aligned(dx))
    launch(dx.device(), blocks, block_threads, gradient_kernel_of_2x2<T, Shares>, windows, count, shares,
           elements_of<T>(dx));
  else
    launch(dx.device(), blocks, block_threads, gradient_kernel<T, Shares>, windows, count, is_aligned(dx),
           shares, elements_of<T>(dx));
}

void max_backward(const pool2d_problem& problem, const tensor& dy, const tensor& indices, tensor& dx) {
  with_floating(dy.dtype(), [&](auto zero) {
    with_index_type(indices, [&](auto index) {
      using T = decltype(zero);
      using Index = decltype(index);
      gather<T>(problem, max_shares<T, Index>{elements_of<T>(dy), elements_of<Index>(indices)}, dx);
    });
  });
}

void average_backward(const pool2d_problem& problem, const tensor& dy, tensor& dx) {
  with_floating(dy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    gather<T>(problem, average_shares<T>{elements_of<T>(dy)}, dx);
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
  map_channels({1, planes, size}, share_of_plane{floating_values(dy), static_cast<float>(size)}, dx);
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
