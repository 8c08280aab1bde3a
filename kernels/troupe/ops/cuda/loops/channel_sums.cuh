#pragma once
#include <algorithm>
#include <type_traits>

#include "troupe/ops/cuda/loops/divisor.cuh"
#include "troupe/ops/cuda/loops/rows.cuh"
#include "troupe/ops/gradient_mode.hpp"
#include "troupe/ops/kernels/batch_norm.hpp"

// Sums over each channel of [batch, channels, size], in an order that depends only on the shape and the
// dtype. Each thread block sums a part of a channel, its threads short runs in f32 and the rest in f64. The
// kernel that uses the sum adds the parts, a warp per channel. No atomics.

namespace troupe::cuda {

struct double_sum {
  static constexpr double neutral = 0;
  __device__ double operator()(double a, double b) const { return a + b; }
};

/// The channel of this thread's warp, in kernels with a warp per channel.
__device__ inline std::int64_t channel_of_warp() {
  return (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / warp_threads;
}
/// The number of blocks of block_threads for such a kernel.
inline unsigned blocks_of_warps(std::int64_t channels) { return blocks_for(channels * warp_threads); }

/// The parts of two sums over a channel each: [channels][num_parts].
struct channel_sums {
  const double2* parts;
  std::int64_t num_parts;

  /// Called by all threads of a warp.
  __device__ double2 of(std::int64_t channel) const {
    double2 total{0, 0};
    for (std::int64_t part = threadIdx.x % warp_threads; part < num_parts; part += warp_threads) {
      auto more = parts[channel * num_parts + part];
      total.x += more.x;
      total.y += more.y;
    }
    return {reduce_warp<double_sum>(total.x), reduce_warp<double_sum>(total.y)};
  }
};

/// The elements at `from` as floats: one, or a pack, whose address is a multiple of 16 bytes if it IsAligned.
template <bool IsAligned, class T, int Lanes>
__device__ void read_vector(const T* from, float (&values)[Lanes]) {
  if constexpr (IsAligned && Lanes == pack<T>::size) {
    auto loaded = load_pack(from);
#pragma unroll
    for (int i = 0; i < Lanes; ++i) values[i] = as_float(loaded.lanes[i]);
  } else {
#pragma unroll
    for (int i = 0; i < Lanes; ++i) values[i] = as_float(from[i]);
  }
}

/// What a thread has loaded of a channel before it adds it up in f32: `count` vectors of Lanes elements.
template <class Vector, int Lanes>
struct run_of_vectors {
  static constexpr int most = 32 / Lanes;
  Vector vectors[most];
  int count;

  __device__ int num_elements() const { return count * Lanes; }

  template <class Visit>
  __device__ void for_each(const Visit& visit) const {
#pragma unroll
    for (int i = 0; i < most; ++i)
      if (i < count) {
#pragma unroll
        for (int lane = 0; lane < Lanes; ++lane) visit(vectors[i], lane);
      }
  }
};

/// The vectors of a channel, which are counted through all images.
struct channel_vectors {
  std::int64_t channels, in_image, count;
  divisor<std::int64_t> by_in_image;

  /// The number of the vector in the whole tensor.
  __device__ std::int64_t in_tensor(std::int64_t position, std::int64_t channel) const {
    auto image = by_in_image.quotient(position);
    return (image * channels + channel) * in_image + (position - image * in_image);
  }
};

/// A part of a channel per block; blockIdx.y counts parts.
template <int Lanes, class Term>
__global__ void __launch_bounds__(block_threads)
    channel_parts_kernel(Term term, channel_vectors vectors, bool are_aligned, std::int64_t part_vectors,
                         double2* parts) {
  using run = run_of_vectors<typename Term::template vector<Lanes>, Lanes>;
  std::int64_t channel = blockIdx.x;
  auto first = blockIdx.y * part_vectors, last = min(vectors.count, first + part_vectors);
  double2 total{0, 0};
  for (auto begin = first + threadIdx.x; begin < last; begin += run::most * block_threads) {
    run some;
    some.count =
        static_cast<int>(min(std::int64_t{run::most}, (last - begin + block_threads - 1) / block_threads));
    // All loads are under way before the first is waited for. Those behind the end load the last vector
    // again.
    auto load = [&](auto aligned) {
#pragma unroll
      for (int i = 0; i < run::most; ++i) {
        auto at = min(begin + i * std::int64_t{block_threads}, last - 1);
        term.template load<aligned.value>(vectors.in_tensor(at, channel) * Lanes, some.vectors[i]);
      }
    };
    if (are_aligned)
      load(std::true_type());
    else
      load(std::false_type());
    auto more = term.sum_of(some, channel);
    total.x += more.x;
    total.y += more.y;
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

/// Adds up what `term` makes of runs of each channel. Term::load sets a Term::vector<Lanes> from elements
/// [at, at + Lanes), of one or of Term::lanes, which is a pack's; term.sum_of(run, channel) is a double2.
template <class Term>
channel_sum_memory sums_over_channels(const batch_norm_problem& problem, device target, bool are_aligned,
                                      Term term) {
  constexpr std::int64_t min_elements = 8192, max_parts = 64;
  auto count = problem.batch * problem.size;
  auto part_elements = std::max(min_elements, (count + max_parts - 1) / max_parts);
  auto num_parts = (count + part_elements - 1) / part_elements;
  auto memory = tensor::empty({problem.channels * num_parts * static_cast<std::int64_t>(sizeof(double2))},
                              dtype::u8, target);
  dim3 grid(num_blocks(problem.channels), static_cast<unsigned>(num_parts));
  auto queue = [&](auto lanes) {
    auto in_image = problem.size / lanes;
    channel_vectors vectors{problem.channels, in_image, problem.batch * in_image,
                            divisor<std::int64_t>(in_image)};
    launch(target, grid, block_threads, channel_parts_kernel<lanes, Term>, term, vectors, are_aligned,
           (part_elements + lanes - 1) / lanes, elements_of<double2>(memory));
  };
  if (count > 0 && problem.size % Term::lanes == 0)
    queue(std::integral_constant<int, Term::lanes>());
  else if (count > 0)
    queue(std::integral_constant<int, 1>());
  return {memory, {elements_of<double2>(memory), num_parts}};
}

/// The elements themselves, whose sum is the first of the two.
template <class T>
struct value_term {
  static constexpr int lanes = pack<T>::size;
  template <int Lanes>
  struct vector {
    float x[Lanes];
  };
  const T* x;

  template <bool IsAligned, int Lanes>
  __device__ void load(std::int64_t position, vector<Lanes>& to) const {
    read_vector<IsAligned>(x + position, to.x);
  }
  template <class Run>
  __device__ double2 sum_of(const Run& run, std::int64_t) const {
    float sum = 0;
    run.for_each([&](const auto& each, int lane) { sum += each.x[lane]; });
    return {sum, 0};
  }
};

}  // namespace troupe::cuda
