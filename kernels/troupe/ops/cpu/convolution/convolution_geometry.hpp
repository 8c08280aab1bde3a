#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "troupe/ops/cpu/convolution/padded_planes.hpp"
#include "troupe/ops/cpu/convolution/window_product.hpp"
#include "troupe/ops/cpu/loops/parallel.hpp"
#include "troupe/ops/kernels/conv2d.hpp"

namespace troupe::cpu {

inline std::int64_t size_of(size_2d extent) { return extent.h * extent.w; }

inline std::int64_t group_inputs(const conv2d_problem& problem) {
  return problem.in_channels / problem.options.groups;
}
inline std::int64_t group_outputs(const conv2d_problem& problem) {
  return problem.out_channels / problem.options.groups;
}

/// The work of a pass, in parallel_for's `elements`.
inline std::int64_t convolution_elements(const conv2d_problem& problem) {
  return problem.batch * problem.out_channels * size_of(problem.out) * group_inputs(problem) *
         size_of(problem.kernel) / multiply_adds_per_element;
}

/// Input planes as the windows of the forward pass see them. The pixel of a window under row k and column l
/// of the kernel is at offset_of({k dilation.h, l dilation.w}) + the window's row * phase.w + its column.
inline padded_planes planes_under_windows(const conv2d_problem& problem) {
  const auto& [stride, padding, dilation, groups, relu] = problem.options;
  return {.plane = problem.in,
          .before = padding,
          .stride = stride,
          .phase = {problem.out.h + (problem.kernel.h - 1) * dilation.h / stride.h,
                    problem.out.w + (problem.kernel.w - 1) * dilation.w / stride.w}};
}

/// The offset of a tap in planes_under_windows, for each channel, row and column of the kernel in turn.
inline std::vector<std::int64_t> taps_of_windows(const conv2d_problem& problem, const padded_planes& planes,
                                                 std::int64_t channels) {
  std::vector<std::int64_t> taps;
  for (std::int64_t channel = 0; channel < channels; ++channel)
    for (std::int64_t k = 0; k < problem.kernel.h; ++k)
      for (std::int64_t l = 0; l < problem.kernel.w; ++l)
        taps.push_back(channel * planes.plane_size() +
                       planes.offset_of({k * problem.options.dilation.h, l * problem.options.dilation.w}));
  return taps;
}

/// Into how many parts to cut each image of a group, so that all threads have one.
inline std::int64_t parts_of_image(const conv2d_problem& problem) {
  auto images = problem.batch * problem.options.groups;
  auto threads = std::int64_t{threads_for(convolution_elements(problem))};
  return images >= threads ? 1 : (threads + images - 1) / images;
}

/// The images of all groups, in the order of memory, that a thread computes; or a part of one.
struct image_range {
  std::int64_t begin = 0, end = 0;
  image_part part;
};

/// Calls `run(image_range)` for all images of all groups, on all the threads this thread may use; each image
/// is cut into `parts`.
template <class Run>
void for_each_image_range(const conv2d_problem& problem, std::int64_t parts, const Run& run) {
  auto elements = convolution_elements(problem);
  auto images = problem.batch * problem.options.groups;
  if (parts > 1)
    return parallel_for(images * parts, elements, [&](std::int64_t index) {
      run(image_range{index / parts, index / parts + 1, {index % parts, parts}});
    });
  auto count = std::min<std::int64_t>(images, threads_for(elements));
  parallel_for(count, elements, [&](std::int64_t index) {
    run(image_range{images * index / count, images * (index + 1) / count, {}});
  });
}

/// Zeros for `count` padded planes.
inline tensor zero_planes(const padded_planes& planes, std::int64_t count) {
  return tensor::zeros({count * planes.plane_size() + floats_after_planes});
}

}  // namespace troupe::cpu
