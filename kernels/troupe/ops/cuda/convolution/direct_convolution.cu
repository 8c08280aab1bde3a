#include "troupe/ops/cuda/convolution/convolution_passes.hpp"

#include <algorithm>

#include "troupe/ops/cuda/loops/elements.cuh"
#include "troupe/ops/cuda/loops/launch.cuh"

// One thread computes one element of y or dx; adjacent threads have adjacent pixels. An element of dweight
// sums over all images, so the sum is split into parts of some lines of y. A thread sums each line, then its
// lines. A second kernel adds the parts, in order.

namespace troupe::cuda {
namespace {

__device__ std::int64_t thread_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

/// Place of an element in [N, channels, H, W].
struct pixel_place {
  std::int64_t image, channel, i, j;
};
__device__ pixel_place place_of(std::int64_t index, std::int64_t channels, size_2d extents) {
  auto line = index / extents.w, plane = line / extents.h;
  return {plane / channels, plane % channels, line % extents.h, index - line * extents.w};
}

template <class T>
__global__ void forward_kernel(conv2d_problem problem, std::int64_t count, const T* x, const T* weight,
                               T* y) {
  auto index = thread_index();
  if (index >= count) return;
  const auto& options = problem.options;
  auto at = place_of(index, problem.out_channels, problem.out);
  auto channels = problem.in_channels / options.groups,
       group = at.channel / (problem.out_channels / options.groups);
  auto plane = problem.in.h * problem.in.w, taps = problem.kernel.h * problem.kernel.w;
  const auto* image = x + (at.image * problem.in_channels + group * channels) * plane;
  const auto* filter = weight + at.channel * channels * taps;
  float sum = 0;
  for (std::int64_t k = 0; k < problem.kernel.h; ++k) {
    auto row = at.i * options.stride.h - options.padding.h + k * options.dilation.h;
    if (row < 0 || row >= problem.in.h) continue;
    for (std::int64_t l = 0; l < problem.kernel.w; ++l) {
      auto column = at.j * options.stride.w - options.padding.w + l * options.dilation.w;
      if (column < 0 || column >= problem.in.w) continue;
      const auto* pixel = image + row * problem.in.w + column;
      const auto* tap = filter + k * problem.kernel.w + l;
      for (std::int64_t c = 0; c < channels; ++c) sum += as_float(pixel[c * plane]) * as_float(tap[c * taps]);
    }
  }
  y[index] = rounded<T>(sum);
}

/// Along one axis, the window in which pixel `pixel` is multiplied by tap `tap`, or -1 if there is none.
__device__ std::int64_t window_of(std::int64_t pixel, std::int64_t tap, std::int64_t stride,
                                  std::int64_t padding, std::int64_t dilation, std::int64_t windows) {
  auto begin = pixel + padding - tap * dilation;
  if (begin < 0 || begin % stride != 0 || begin / stride >= windows) return -1;
  return begin / stride;
}

template <class T>
__global__ void input_gradient_kernel(conv2d_problem problem, std::int64_t count, const T* dy,
                                      const T* weight, T* dx) {
  auto index = thread_index();
  if (index >= count) return;
  const auto& options = problem.options;
  auto at = place_of(index, problem.in_channels, problem.in);
  auto channels = problem.in_channels / options.groups, filters = problem.out_channels / options.groups;
  auto group = at.channel / channels;
  auto plane = problem.out.h * problem.out.w, taps = problem.kernel.h * problem.kernel.w;
  const auto* image = dy + (at.image * problem.out_channels + group * filters) * plane;
  const auto* first_filter = weight + (group * filters * channels + at.channel % channels) * taps;
  float sum = 0;
  for (std::int64_t k = 0; k < problem.kernel.h; ++k) {
    auto i = window_of(at.i, k, options.stride.h, options.padding.h, options.dilation.h, problem.out.h);
    if (i < 0) continue;
    for (std::int64_t l = 0; l < problem.kernel.w; ++l) {
      auto j = window_of(at.j, l, options.stride.w, options.padding.w, options.dilation.w, problem.out.w);
      if (j < 0) continue;
      const auto* window = image + i * problem.out.w + j;
      const auto* tap = first_filter + k * problem.kernel.w + l;
      for (std::int64_t o = 0; o < filters; ++o)
        sum += as_float(window[o * plane]) * as_float(tap[o * channels * taps]);
    }
  }
  dx[index] = rounded<T>(sum);
}

/// The windows of a line in which one kernel tap lies inside the image: column `first` + stride j for each
/// window j in [begin, end).
struct window_range {
  std::int64_t begin, end, first;
};
__device__ window_range windows_of_tap(const conv2d_problem& problem, std::int64_t tap) {
  auto stride = problem.options.stride.w,
       first = tap * problem.options.dilation.w - problem.options.padding.w;
  auto begin = first < 0 ? (stride - 1 - first) / stride : 0;
  auto end = first < problem.in.w ? min(problem.out.w, (problem.in.w - 1 - first) / stride + 1) : 0;
  return {begin, end, first};
}

/// parts[part][element of dweight] = the sum over `part_lines` lines of y; blockIdx.y counts parts.
template <class T>
__global__ void weight_parts_kernel(conv2d_problem problem, std::int64_t count, std::int64_t part_lines,
                                    const T* x, const T* dy, float* parts) {
  auto index = thread_index();
  if (index >= count) return;
  const auto& options = problem.options;
  auto channels = problem.in_channels / options.groups;
  auto at = place_of(index, channels, problem.kernel);  // image: the output channel; i and j: the tap
  auto filter = at.image, channel = filter / (problem.out_channels / options.groups) * channels + at.channel;
  auto windows = windows_of_tap(problem, at.j);
  auto first_line = blockIdx.y * part_lines,
       last_line = min(problem.batch * problem.out.h, first_line + part_lines);
  float total = 0;
  for (auto line = first_line; line < last_line; ++line) {
    auto image = line / problem.out.h, i = line % problem.out.h;
    auto row = i * options.stride.h - options.padding.h + at.i * options.dilation.h;
    if (row < 0 || row >= problem.in.h) continue;
    const auto* pixels = x + ((image * problem.in_channels + channel) * problem.in.h + row) * problem.in.w;
    const auto* gradients =
        dy + ((image * problem.out_channels + filter) * problem.out.h + i) * problem.out.w;
    float sum = 0;
    for (auto j = windows.begin; j < windows.end; ++j)
      sum += as_float(gradients[j]) * as_float(pixels[windows.first + j * options.stride.w]);
    total += sum;
  }
  parts[blockIdx.y * count + index] = total;
}

template <class T>
__global__ void add_parts_kernel(const float* parts, std::int64_t num_parts, std::int64_t count,
                                 bool accumulate, T* dweight) {
  auto index = thread_index();
  if (index >= count) return;
  float total = 0;
  for (std::int64_t part = 0; part < num_parts; ++part) total += parts[part * count + index];
  dweight[index] = rounded<T>(accumulate ? as_float(dweight[index]) + total : total);
}

/// Lines of y per part: enough parts to occupy the GPU with few weights, but bounded memory with many
/// weights.
std::int64_t lines_in_part(std::int64_t lines, std::int64_t weights) {
  constexpr std::int64_t wanted_threads = 1 << 18, max_parts = 512;
  auto parts = std::clamp<std::int64_t>(wanted_threads / weights, 1, max_parts);
  return (lines + parts - 1) / parts;
}

}  // namespace

void direct_forward(const conv2d_problem& problem, const tensor& x, const tensor& weight, tensor& y) {
  auto count = y.num_elements();
  with_floating(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch(y.device(), blocks_for(count), block_threads, forward_kernel<T>, problem, count, elements_of<T>(x),
           elements_of<T>(weight), elements_of<T>(y));
  });
}

void direct_input_gradient(const conv2d_problem& problem, const tensor& dy, const tensor& weight,
                           tensor& dx) {
  auto count = dx.num_elements();
  with_floating(dy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch(dx.device(), blocks_for(count), block_threads, input_gradient_kernel<T>, problem, count,
           elements_of<T>(dy), elements_of<T>(weight), elements_of<T>(dx));
  });
}

void direct_weight_gradient(const conv2d_problem& problem, const tensor& x, const tensor& dy, tensor& dweight,
                            gradient_mode mode) {
  auto count = dweight.num_elements(), lines = problem.batch * problem.out.h;
  auto part_lines = lines_in_part(lines, count), num_parts = (lines + part_lines - 1) / part_lines;
  auto parts = tensor::empty({num_parts, count}, dtype::f32, dweight.device());
  with_floating(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch(dweight.device(), dim3(blocks_for(count), static_cast<unsigned>(num_parts)), block_threads,
           weight_parts_kernel<T>, problem, count, part_lines, elements_of<T>(x), elements_of<T>(dy),
           elements_of<float>(parts));
  });
  with_floating(dweight.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch(dweight.device(), blocks_for(count), block_threads, add_parts_kernel<T>, elements_of<float>(parts),
           num_parts, count, mode == gradient_mode::accumulate, elements_of<T>(dweight));
  });
}

}  // namespace troupe::cuda
