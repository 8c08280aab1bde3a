#pragma once
#include <algorithm>
#include <cstdint>
#include <span>

#include "troupe/ops/cpu/block_conversion.hpp"
#include "troupe/ops/cpu/parallel.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::cpu {

/// How two tensors are cut into planes: `in_size` elements of the input and `out_size` of the output each.
/// `scratch_size` floats are at the disposal of what is done with one.
struct plane_sizes {
  std::int64_t in_size = 0, out_size = 0, scratch_size = 0;
};

/// Calls `body(first, planes, in, out, scratch)`, all of f32, for some of `count` planes after the other, on
/// all the threads this thread may use. f32 is used in place; bf16 and f16 are converted.
template <class Body>
void for_some_planes(std::int64_t count, const plane_sizes& sizes, const tensor& input, tensor& output,
                     const Body& body) {
  constexpr std::int64_t worth_a_task = 16384;  // elements
  auto in_size = sizes.in_size, out_size = sizes.out_size, scratch_size = sizes.scratch_size;
  auto in_task = std::max<std::int64_t>(1, worth_a_task / std::max({in_size, out_size, std::int64_t{1}}));
  parallel_for((count + in_task - 1) / in_task, count * std::max(in_size, out_size), [&](std::int64_t task) {
    auto first = task * in_task, planes = std::min(in_task, count - first);
    auto in_room = input.dtype() == dtype::f32 ? 0 : planes * in_size;
    auto out_room = output.dtype() == dtype::f32 ? 0 : planes * out_size;
    tensor scratch;
    std::span<float> room;
    if (in_room + out_room + scratch_size > 0) {
      scratch = tensor::empty({in_room + out_room + scratch_size});
      room = scratch.values<float>();
    }
    const auto* in = read_block(input, first * in_size, planes * in_size, room);
    auto* out = block_to_write(output, first * out_size, room.subspan(static_cast<std::size_t>(in_room)));
    body(first, planes, in, out, room.data() + in_room + out_room);
    write_block(output, first * out_size, planes * out_size, out);
  });
}

/// Calls `body(plane, in, out, scratch)` for each plane likewise.
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
