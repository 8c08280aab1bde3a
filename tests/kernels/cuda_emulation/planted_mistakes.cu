#include "kernels/cuda_emulation/planted_mistakes.hpp"

#include <numeric>

#include "support/cuda_emulation/execution/grid.hpp"
#include "troupe/ops/cuda/attention/tensor_core.cuh"
#include "troupe/ops/cuda/loops/launch_kernel.cuh"

namespace troupe::testing {
namespace {

using emulation::execution_options;
using emulation::launch_shape;

constexpr int num_threads = 64;

/// Runs one block of a kernel, of which is_planted is the first argument.
template <class Kernel, class... Arguments>
void run_block(const execution_options& options, launch_shape shape, Kernel kernel, Arguments... arguments) {
  emulation::check_launch(shape, reinterpret_cast<const void*>(kernel));
  emulation::run_grid<Kernel>(shape, options, [&] { kernel(arguments...); });
}
launch_shape block_of(unsigned threads, unsigned memory_bytes = 0) {
  return {dim3(1), threads, memory_bytes};
}

/// The block's values in the opposite order.
__global__ void reverse_kernel(bool is_planted, int* out) {
  __shared__ int values[num_threads];
  int i = threadIdx.x;
  values[i] = i;
  if (is_planted)
    __syncwarp();  // as if a warp were the whole block
  else
    __syncthreads();
  out[i] = values[num_threads - 1 - i];
}
__global__ void unsynchronized_kernel(bool is_planted, int* out) {
  __shared__ int values[num_threads];
  int i = threadIdx.x;
  values[i] = i;
  if (!is_planted) __syncthreads();
  out[i] = values[num_threads - 1 - i];
}
template <auto Kernel>
bool reverses(bool is_planted, const execution_options& options) {
  std::vector<int> out(num_threads), expected(num_threads);
  run_block(options, block_of(num_threads), Kernel, is_planted, out.data());
  std::iota(expected.rbegin(), expected.rend(), 0);
  return out == expected;
}

/// One buffer for round after round.
__global__ void rounds_kernel(bool is_planted, int* out) {
  __shared__ int values[num_threads];
  int i = threadIdx.x, sum = 0;
  for (int round = 0; round < 4; ++round) {
    values[i] = round * i;
    __syncthreads();
    sum += values[(i + 33) % num_threads];
    if (!is_planted) __syncthreads();
  }
  out[i] = sum;
}
bool adds_rounds(bool is_planted, const execution_options& options) {
  std::vector<int> out(num_threads);
  run_block(options, block_of(num_threads), rounds_kernel, is_planted, out.data());
  for (int i = 0; i < num_threads; ++i)
    if (out[static_cast<std::size_t>(i)] != 6 * ((i + 33) % num_threads)) return false;
  return true;
}

__global__ void copy_kernel(bool is_planted, const uint4* from, uint4* to) {
  auto* memory = cuda::dynamic_shared_memory<uint4>();
  cuda::begin_copy(memory + threadIdx.x, from + threadIdx.x, true);
  if (!is_planted) cuda::finish_copies();
  __syncthreads();
  to[threadIdx.x] = memory[num_threads - 1 - threadIdx.x];
}
bool copies(bool is_planted, const execution_options& options) {
  std::vector<uint4> from(num_threads), to(num_threads);
  for (unsigned i = 0; i < num_threads; ++i) from[i].x = i;
  run_block(options, block_of(num_threads, num_threads * sizeof(uint4)), copy_kernel, is_planted,
            static_cast<const uint4*>(from.data()), to.data());
  for (unsigned i = 0; i < num_threads; ++i)
    if (to[i].x != num_threads - 1 - i) return false;
  return true;
}

constexpr int side = cuda::tile_size;

struct tile_mistakes {
  bool swaps_columns = false, is_misaligned = false;
};
/// c = a b, each [16, 16].
__global__ void product_kernel(tile_mistakes planted, const bfloat16* a, const bfloat16* b, float* c) {
  auto* memory = cuda::dynamic_shared_memory<bfloat16>();
  for (int i = threadIdx.x; i < side * side; i += 32) {
    memory[i] = a[i];
    memory[side * side + i] = b[i];
  }
  __syncwarp();
  auto left = cuda::load_left(memory + (planted.is_misaligned ? 1 : 0), side);
  auto right = cuda::load_right(memory + side * side, side);
  if (planted.swaps_columns) std::swap(right.words[0][0], right.words[0][1]);
  cuda::sum_tile sums{};
  cuda::add_product<bfloat16>(left, right, sums);
  for (int i = 0; i < 8; ++i) c[cuda::sum_row(i) * side + cuda::sum_column(i)] = sums.values[i];
}
bool multiplies(tile_mistakes planted, const execution_options& options) {
  std::vector<bfloat16> a(side * side), b(side * side);
  std::vector<float> c(side * side);
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = bfloat16(static_cast<float>(i % 7));
    b[i] = bfloat16(static_cast<float>(i % 5));
  }
  run_block(options, block_of(32, 3 * side * side * sizeof(bfloat16)), product_kernel, planted,
            static_cast<const bfloat16*>(a.data()), static_cast<const bfloat16*>(b.data()), c.data());
  for (std::size_t i = 0; i < c.size(); ++i) {
    float expected = 0;
    for (std::size_t k = 0; k < side; ++k)
      expected += static_cast<float>(a[i / side * side + k]) * static_cast<float>(b[k * side + i % side]);
    if (c[i] != expected) return false;
  }
  return true;
}

/// The sum of the first `count` elements.
__global__ void masked_sum_kernel(bool is_planted, const int* x, int count, int* sum) {
  int i = threadIdx.x;
  auto value = (is_planted ? i <= count : i < count) ? x[i] : 0;
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(~0U, value, distance);
  if (i == 0) *sum = value;
}
bool masks(bool is_planted, const execution_options& options) {
  std::vector<int> x(32, 1);
  int sum = 0;
  run_block(options, block_of(32), masked_sum_kernel, is_planted, static_cast<const int*>(x.data()), 21,
            &sum);
  return sum == 21;
}

__device__ void synchronize_some() { __syncthreads(); }
__global__ void branch_kernel(bool is_planted, int* out) {
  __shared__ int first;
  if (threadIdx.x == 0) first = 7;
  if (is_planted && threadIdx.x >= 32) return;
  synchronize_some();
  out[threadIdx.x] = first;
}
__global__ void two_barriers_kernel(bool is_planted, int* out) {
  __shared__ int first;
  if (threadIdx.x == 0) first = 7;
  if (is_planted && threadIdx.x >= 32)
    __syncthreads();
  else
    synchronize_some();
  out[threadIdx.x] = first;
}
template <auto Kernel>
bool broadcasts(bool is_planted, const execution_options& options) {
  std::vector<int> out(num_threads);
  run_block(options, block_of(num_threads), Kernel, is_planted, out.data());
  return out == std::vector<int>(num_threads, 7);
}

/// Half of a warp goes on alone.
__global__ void half_warp_kernel(bool is_planted, int* out) {
  int value = threadIdx.x;
  if (is_planted && threadIdx.x >= 16) return;
  out[threadIdx.x] = __shfl_xor_sync(~0U, value, 1);
}
bool shuffles(bool is_planted, const execution_options& options) {
  std::vector<int> out(32);
  run_block(options, block_of(32), half_warp_kernel, is_planted, out.data());
  for (int i = 0; i < 32; ++i)
    if (out[static_cast<std::size_t>(i)] != (i ^ 1)) return false;
  return true;
}
__global__ void mixed_waits_kernel(bool is_planted) {
  if (is_planted && threadIdx.x < 16)
    __syncwarp();
  else
    __syncthreads();
}
bool waits_together(bool is_planted, const execution_options& options) {
  run_block(options, block_of(32), mixed_waits_kernel, is_planted);
  return true;
}

/// out [count] = 1
__global__ void fill_kernel(bool is_planted, int count, int* out) {
  if (is_planted || static_cast<int>(threadIdx.x) < count) out[threadIdx.x] = 1;
}
bool fills(bool is_planted, const execution_options& options) {
  constexpr int count = 50;
  int* out = nullptr;
  if (cudaMalloc(reinterpret_cast<void**>(&out), count * sizeof(int)) != cudaSuccess) return false;
  run_block(options, block_of(num_threads), fill_kernel, is_planted, count, out);
  auto sum = std::accumulate(out, out + count, 0);
  return cudaFree(out) == cudaSuccess && sum == count;
}

__global__ void unset_kernel(bool is_planted, float* out) {
  __shared__ float values[num_threads];
  if (!is_planted) values[threadIdx.x] = 0;
  values[threadIdx.x] += 1;
  out[threadIdx.x] = values[threadIdx.x];
}
bool counts(bool is_planted, const execution_options& options) {
  std::vector<float> out(num_threads);
  run_block(options, block_of(num_threads), unset_kernel, is_planted, out.data());
  return out == std::vector<float>(num_threads, 1);
}

__global__ void nothing_kernel() {}
bool is_launched(const execution_options& options, launch_shape shape) {
  run_block(options, shape, nothing_kernel);
  return true;
}

}  // namespace

const std::vector<planted_mistake>& planted_mistakes() {
  using options = execution_options;
  static const std::vector<planted_mistake> all{
      {"a missing __syncthreads", "", reverses<unsynchronized_kernel>},
      {"a warp taken for the whole block", "", reverses<reverse_kernel>},
      {"a buffer written again while it is read", "", adds_rounds},
      {"a missing wait for cp.async", "expected a wait for each cp.async", copies},
      {"swapped words of mma's right operand", "",
       [](bool planted, const options& by) { return multiplies({.swaps_columns = planted}, by); }},
      {"ldmatrix of a misaligned row", "ldmatrix",
       [](bool planted, const options& by) { return multiplies({.is_misaligned = planted}, by); }},
      {"a mask too wide by one", "", masks},
      {"a barrier that some threads do not reach", "threads of the block", broadcasts<branch_kernel>},
      {"two barriers in two branches", "in one barrier", broadcasts<two_barriers_kernel>},
      {"a shuffle from lanes that have ended", "lanes of the warp", shuffles},
      {"some lanes in a warp's wait, some in the block's", "got a deadlock", waits_together},
      {"a missing bounds check", "something wrote to", fills},
      {"unwritten shared memory", "", counts},
      {"too many threads", "expected 1 to 1024 threads, got 1025",
       [](bool planted, const options& by) { return is_launched(by, block_of(planted ? 1025 : 1024)); }},
      {"too much shared memory", "call cudaFuncSetAttribute", [](bool planted, const options& by) {
         return is_launched(by, block_of(32, planted ? 49153 : 49152));
       }}};
  return all;
}

}  // namespace troupe::testing
