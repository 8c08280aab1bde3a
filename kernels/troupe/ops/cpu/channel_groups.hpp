#pragma once
#include <algorithm>
#include <cstdint>

#include "troupe/ops/cpu/loops/parallel.hpp"
#include "troupe/ops/cpu/rows.hpp"
#include "troupe/ops/kernels/batch_norm.hpp"

namespace troupe::cpu {

// Iteration over tensors [batch, channels, size] by groups of adjacent channels; a group's elements in one
// image are a contiguous line.

struct channel_group {
  std::int64_t first, count;
};

constexpr std::int64_t max_channels_in_group = 16;
constexpr std::int64_t long_run = 256;  // elements of a channel in an image

/// The number of channels per group: as many as fit into the L2 cache, but at least four groups for the
/// threads.
inline std::int64_t channels_in_group(const batch_norm_problem& problem) {
  constexpr std::int64_t room = 65536;  // elements
  auto most = std::clamp<std::int64_t>(room / std::max<std::int64_t>(1, problem.batch * problem.size), 1,
                                       max_channels_in_group);
  return std::clamp<std::int64_t>(problem.channels / 4, 1, most);
}

/// Calls `body(channel_group)` for all channels, on all the threads this thread may use.
template <class Body>
void for_each_group(const batch_norm_problem& problem, const Body& body) {
  auto count = channels_in_group(problem);
  parallel_for((problem.channels + count - 1) / count, problem.batch * problem.channels * problem.size,
               [&](std::int64_t group) {
                 auto first = group * count;
                 body(channel_group{first, std::min(count, problem.channels - first)});
               });
}

/// Calls `body(channel_group, image)` for all lines, in the order of memory, on all the threads.
template <class Body>
void for_each_line(const batch_norm_problem& problem, const Body& body) {
  auto count = std::min(problem.channels, max_channels_in_group),
       groups = (problem.channels + count - 1) / std::max<std::int64_t>(1, count);
  parallel_for(problem.batch * groups, problem.batch * problem.channels * problem.size,
               [&](std::int64_t index) {
                 auto first = index % groups * count;
                 body(channel_group{first, std::min(count, problem.channels - first)}, index / groups);
               });
}

/// The offset of a group's line in an image.
inline std::int64_t line_begin(const batch_norm_problem& problem, channel_group group, std::int64_t image) {
  return (image * problem.channels + group.first) * problem.size;
}

/// A line as f32: in place, or converted into the scratch of `slot`.
inline const float* read_line(const batch_norm_problem& problem, const tensor& x, channel_group group,
                              std::int64_t image, std::size_t slot) {
  auto size = group.count * problem.size;
  auto scratch = x.dtype() == dtype::f32 ? std::span<float>{} : row_scratch(slot, size);
  return read_block(x, line_begin(problem, group, image), size, scratch);
}

/// Calls `write(float*)` with where to write a line, then converts what it wrote.
template <class Write>
void write_line(const batch_norm_problem& problem, tensor& y, channel_group group, std::int64_t image,
                std::size_t slot, const Write& write) {
  auto size = group.count * problem.size;
  auto scratch = y.dtype() == dtype::f32 ? std::span<float>{} : row_scratch(slot, size);
  auto* target = block_to_write(y, line_begin(problem, group, image), scratch);
  write(target);
  write_block(y, line_begin(problem, group, image), size, target);
}

}  // namespace troupe::cpu
