#pragma once
#include <algorithm>
#include <cstdint>

#include "troupe/ops/cpu/parallel.hpp"
#include "troupe/ops/cpu/rows.hpp"
#include "troupe/ops/kernels/batch_norm.hpp"

namespace troupe::cpu {

// Tensors [batch, channels, size], some neighbouring channels at a time: what these have in one image is a
// line without gaps.

struct channel_group {
  std::int64_t first, count;
};

constexpr std::int64_t most_channels_in_group = 16;
constexpr std::int64_t long_run = 256;  // elements of a channel in an image

/// So many go together that they fit into the second cache, if one does, and that there are four groups for
/// the threads.
inline std::int64_t channels_in_group(const batch_norm_problem& of) {
  constexpr std::int64_t room = 65536;  // elements
  auto most = std::clamp<std::int64_t>(room / std::max<std::int64_t>(1, of.batch * of.size), 1,
                                       most_channels_in_group);
  return std::clamp<std::int64_t>(of.channels / 4, 1, most);
}

/// Calls `body(channel_group)` for all channels, on all the threads this thread may use.
template <class Body>
void for_each_group(const batch_norm_problem& of, const Body& body) {
  auto count = channels_in_group(of);
  parallel_for((of.channels + count - 1) / count, of.batch * of.channels * of.size, [&](std::int64_t group) {
    auto first = group * count;
    body(channel_group{first, std::min(count, of.channels - first)});
  });
}

/// Calls `body(channel_group, image)` for all lines, in the order of memory, on all the threads.
template <class Body>
void for_each_line(const batch_norm_problem& of, const Body& body) {
  auto count = std::min(of.channels, most_channels_in_group),
       groups = (of.channels + count - 1) / std::max<std::int64_t>(1, count);
  parallel_for(of.batch * groups, of.batch * of.channels * of.size, [&](std::int64_t index) {
    auto first = index % groups * count;
    body(channel_group{first, std::min(count, of.channels - first)}, index / groups);
  });
}

/// Where in a tensor the line of an image begins.
inline std::int64_t line_begin(const batch_norm_problem& of, channel_group group, std::int64_t image) {
  return (image * of.channels + group.first) * of.size;
}

/// A line as f32: in place, or converted into the scratch of `slot`.
inline const float* read_line(const batch_norm_problem& of, const tensor& x, channel_group group,
                              std::int64_t image, std::size_t slot) {
  auto size = group.count * of.size;
  auto scratch = x.dtype() == dtype::f32 ? std::span<float>{} : row_scratch(slot, size);
  return read_block(x, line_begin(of, group, image), size, scratch);
}

/// Calls `write(float*)` with where to write a line, then converts what it wrote.
template <class Write>
void write_line(const batch_norm_problem& of, tensor& y, channel_group group, std::int64_t image,
                std::size_t slot, const Write& write) {
  auto size = group.count * of.size;
  auto scratch = y.dtype() == dtype::f32 ? std::span<float>{} : row_scratch(slot, size);
  auto* target = block_to_write(y, line_begin(of, group, image), scratch);
  write(target);
  write_block(y, line_begin(of, group, image), size, target);
}

}  // namespace troupe::cpu
