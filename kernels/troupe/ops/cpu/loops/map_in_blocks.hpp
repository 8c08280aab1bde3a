#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "troupe/ops/cpu/loops/block_conversion.hpp"
#include "troupe/ops/cpu/loops/parallel.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::cpu {

/// Elements per block: the f32 blocks of all operands fit into the L1 cache.
constexpr std::int64_t block_elements = 2048;

/// Calls `loop(inputs..., output, size)`, with float pointers, for each block of tensors of one size, in
/// parallel on this thread's threads. f32 is used in place; bf16 and f16 are converted block by block. The
/// output may be one of the inputs.
template <class Loop, class... Tensors>
void map_in_blocks(Loop loop, tensor& output, const Tensors&... inputs) {
  constexpr std::size_t num_inputs = sizeof...(inputs);
  const std::array<const tensor*, num_inputs> from{&inputs...};
  auto size = output.num_elements();
  auto num_blocks = (size + block_elements - 1) / block_elements;
  parallel_for(num_blocks, size, [&](std::int64_t block) {
    alignas(64) std::array<std::array<float, block_elements>, num_inputs + 1> scratch;
    auto first = block * block_elements, count = std::min(block_elements, size - first);
    std::array<const float*, num_inputs> values;
    for (std::size_t i = 0; i < num_inputs; ++i) values[i] = read_block(*from[i], first, count, scratch[i]);
    auto* target = block_to_write(output, first, scratch[num_inputs]);
    std::apply([&](auto... value) { loop(value..., target, count); }, values);
    write_block(output, first, count, target);
  });
}

}  // namespace troupe::cpu
