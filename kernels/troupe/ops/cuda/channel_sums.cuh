#pragma once
#include <algorithm>

#include "troupe/ops/cuda/rows.cuh"
#include "troupe/ops/gradient_mode.hpp"
#include "troupe/ops/kernels/batch_norm.hpp"

// Sums over each channel of [batch, channels, size], in an order that depends only on the shape: each thread
// block sums a part of a channel, its threads short runs in f32 and the rest in f64; the kernel that uses the
// sum adds the parts in order. No atomics.

namespace troupe::cuda {

struct double_sum {
  static constexpr double neutral = 0;
  __device__ double operator()(double a, double b) const { return a + b; }
};

/// The parts of two sums over a channel each: [channels][num_parts].
struct channel_sums {
  const double2* parts;
  std::int64_t num_parts;

  __device__ double2 of(std::int64_t channel) const {
    double2 total{0, 0};
    for (std::int64_t part = 0; part < num_parts; ++part) {
      auto more = parts[channel * num_parts + part];
      total.x += more.x;
      total.y += more.y;
    }
    return total;
  }
};

/// A part of a channel per block; blockIdx.y counts parts.
template <class Term>
__global__ void channel_parts_kernel(Term term, batch_norm_problem problem, std::int64_t part_elements,
                                     double2* parts) {
  constexpr int run = 32;  // elements that a thread adds up in f32
  std::int64_t channel = blockIdx.x, count = problem.batch * problem.size;
  auto first = blockIdx.y * part_elements, last = min(count, first + part_elements);
  double2 total{0, 0};
  for (auto begin = first; begin < last; begin += run * blockDim.x) {
    float2 some{0, 0};
    for (int step = 0; step < run; ++step) {
      auto i = begin + step * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
      if (i >= last) break;
      auto image = i / problem.size;
      auto more =
          term((image * problem.channels + channel) * problem.size + (i - image * problem.size), channel);
      some.x += more.x;
      some.y += more.y;
    }
    total.x += some.x;
    total.y += some.y;
  }
  total.x = reduce_block<double_sum>(total.x);
  total.y = reduce_block<double_sum>(total.y);
  if (threadIdx.x == 0) parts[channel * gridDim.y + blockIdx.y] = total;
}

/// The sums' parts and the memory they are in.
struct channel_sum_memory {
  tensor memory;
  channel_sums sums;
};

/// Adds up `term(element, channel)`, a float2, over each channel.
template <class Term>
channel_sum_memory sums_over_channels(const batch_norm_problem& problem, device target, Term term) {
  constexpr std::int64_t min_elements = 8192, max_parts = 64;
  auto count = problem.batch * problem.size;
  auto part_elements = std::max(min_elements, (count + max_parts - 1) / max_parts);
  auto num_parts = (count + part_elements - 1) / part_elements;
  auto memory = tensor::empty({problem.channels * num_parts * static_cast<std::int64_t>(sizeof(double2))},
                              dtype::u8, target);
  dim3 grid(num_blocks(problem.channels), static_cast<unsigned>(num_parts));
  launch(target, grid, block_threads, channel_parts_kernel<Term>, term, problem, part_elements,
         elements_of<double2>(memory));
  return {memory, {elements_of<double2>(memory), num_parts}};
}

}  // namespace troupe::cuda
