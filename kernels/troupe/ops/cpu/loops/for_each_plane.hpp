#pragma once
#include <algorithm>
#include <cstdint>
#include <span>

#include "troupe/ops/cpu/loops/block_conversion.hpp"
#include "troupe/ops/cpu/loops/parallel.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::cpu {

/// Sizes of the planes of two tensors: `in_size` elements of the input and `out_size` of the output per
/// plane, and `scratch_size` floats of scratch memory.
struct plane_sizes {
  std::int64_t in_size = 0, out_size = 0, scratch_size = 0;
};

/// Calls `body(first, planes, in, out, scratch)`, all of f32, for groups of `count` planes, in parallel on
/// this thread's threads. f32 is used in place; bf16 and f16 are converted.
template <class Body>
void for_some_planes(std::int64_t count, const plane_sizes& sizes, const tensor& input, tensor& output,
                     const Body& body) {
  constexpr std::int64_t min_task_elements = 16384;  // elements
  auto in_size = sizes.in_size, out_size = sizes.out_size, scratch_size = sizes.scratch_size;
  auto planes_per_task =
      std::max<std::int64_t>(1, min_task_elements / std::max({in_size, out_size, std::int64_t{1}}));
  parallel_for((count + planes_per_task - 1) / planes_per_task, count * std::max(in_size, out_size),
               [&](std::int64_t task) {
                 auto first = task * planes_per_task, planes = std::min(planes_per_task, count - first);
                 auto in_scratch_size = input.dtype() == dtype::f32 ? 0 : planes * in_size;
                 auto out_scratch_size = output.dtype() == dtype::f32 ? 0 : planes * out_size;
                 tensor scratch;
                 std::span<float> room;
                 if (in_scratch_size + out_scratch_size + scratch_size > 0) {
                   scratch = tensor::empty({in_scratch_size + out_scratch_size + scratch_size});
                   room = scratch.values<float>();
                 }
                 const auto* in = read_block(input, first * in_size, planes * in_size, room);
                 auto* out = block_to_write(output, first * out_size,
                                            room.subspan(static_cast<std::size_t>(in_scratch_size)));
                 body(first, planes, in, out, room.data() + in_scratch_size + out_scratch_size);
                 write_block(output, first * out_size, planes * out_size, out);
               });
}

/// Calls `body(plane, in, out, scratch)` for each plane, likewise.
template <class Body>
void for_each_plane(std::int64_t count, const plane_sizes& sizes, const tensor& input, tensor& output,
                    const Body& body) {
  for_some_planes(count, sizes, input, output,
                  [&](std::int64_t first, std::int64_t planes, const float* in, float* out, float* scratch) {
                    for (std::int64_t i = 0; i < planes; ++i)
                      body(first + i, in + i * sizes.in_size, out + i * sizes.out_size, scratch);
                  });
}

}  // namespace troupe::cpu
