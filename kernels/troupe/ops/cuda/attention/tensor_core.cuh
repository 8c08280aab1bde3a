#pragma once
#include "troupe/ops/cuda/loops/elements.cuh"

// Typed wrappers of ptx.cuh: matrix products of a warp on tensor cores, and asynchronous copies to shared
// memory. Products have tiles of 16 x 16 elements of bf16, f16 or, rounded to TF32, f32, with sums in f32.
// The distribution of elements over threads is that of mma.m16n8k16, and for f32 that of mma.m16n8k8, in the
// PTX ISA ("Warp Level Matrix Instructions").

namespace troupe::cuda {

constexpr int tile_size = 16;

/// An operand, two 16-bit elements or one of TF32 a word; which ones depends on how it was loaded. A part
/// holds the elements that one instruction multiplies.
template <class T>
struct operand_tile {
  static constexpr int parts = sizeof(T) / 2;
  std::uint32_t words[parts][4];
};

/// A tile of sums. Element i of a thread is in row sum_row(i) and column sum_column(i).
struct sum_tile {
  float values[8];
};

__device__ inline int sum_row(int i) { return static_cast<int>(threadIdx.x % 32) / 4 + i / 2 % 2 * 8; }
__device__ inline int sum_column(int i) { return i / 4 * 8 + static_cast<int>(threadIdx.x % 4) * 2 + i % 2; }

/// Words of T as mma takes them: f32 is rounded to TF32.
template <class T>
__device__ void round_words(std::uint32_t (&words)[4]) {
  if constexpr (sizeof(T) == 4)
#pragma unroll
    for (auto& word : words) word = ptx::cvt_rna_tf32_f32(__uint_as_float(word));
}

/// The operand whose first row begins at `rows`, in shared memory, and the others each `stride` elements
/// further; a row's beginning is a multiple of 16 bytes. It is the left operand, or, since a right one is
/// held by columns, the right operand that these rows are the transpose of.
template <class T>
__device__ operand_tile<T> load_rows(const T* rows, int stride, bool is_right) {
  int lane = threadIdx.x % 32;
  auto row = is_right ? lane / 16 * 8 + lane % 8 : lane % 16, column = is_right ? lane / 8 % 2 : lane / 16;
  operand_tile<T> tile;
#pragma unroll
  for (int part = 0; part < tile.parts; ++part) {
    ptx::ldmatrix_x4(tile.words[part], rows + row * stride + (2 * part + column) * pack<T>::size);
    round_words<T>(tile.words[part]);
  }
  return tile;
}

template <class T>
__device__ operand_tile<T> load_left(const T* rows, int stride) {
  return load_rows(rows, stride, false);
}
template <class T>
__device__ operand_tile<T> load_right_transposed(const T* rows, int stride) {
  return load_rows(rows, stride, true);
}

/// The right operand with these rows, for a left one that as_left has made: of f32, the rows are in the order
/// of its columns.
template <class T>
__device__ operand_tile<T> load_right(const T* rows, int stride) {
  int lane = threadIdx.x % 32;
  operand_tile<T> tile;
  ptx::ldmatrix_x4_trans(tile.words[0], rows + lane % 16 * stride + lane / 16 * 8);
  return tile;
}
/// ldmatrix transposes 16-bit elements only.
template <>
__device__ inline operand_tile<float> load_right(const float* rows, int stride) {
  int lane = threadIdx.x % 32;
  operand_tile<float> tile;
#pragma unroll
  for (int part = 0; part < tile.parts; ++part)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      tile.words[part][i] =
          ptx::cvt_rna_tf32_f32(rows[(part * 8 + lane % 4 * 2 + i % 2) * stride + i / 2 * 8 + lane / 4]);
  return tile;
}

/// Two columns' elements, the first in the lower half.
template <class T>
__device__ std::uint32_t rounded_pair(float first, float second);
template <>
__device__ inline std::uint32_t rounded_pair<bfloat16>(float first, float second) {
  return ptx::cvt_rn_bf16x2_f32(second, first);
}
template <>
__device__ inline std::uint32_t rounded_pair<float16>(float first, float second) {
  return ptx::cvt_rn_f16x2_f32(second, first);
}

/// Writes two columns' elements at `to`, which is aligned for both.
template <class T>
__device__ void store_pair(T* to, float first, float second) {
  *reinterpret_cast<std::uint32_t*>(to) = rounded_pair<T>(first, second);
}
template <>
__device__ inline void store_pair(float* to, float first, float second) {
  *reinterpret_cast<float2*>(to) = float2{first, second};
}

/// Rounds sums to a left operand; the elements are in the right threads already. Of f32 the columns are in
/// another order: the even ones of each eight come first.
template <class T>
__device__ operand_tile<T> as_left(const sum_tile& from) {
  operand_tile<T> tile;
#pragma unroll
  for (int i = 0; i < 4; ++i) tile.words[0][i] = rounded_pair<T>(from.values[2 * i], from.values[2 * i + 1]);
  return tile;
}
template <>
__device__ inline operand_tile<float> as_left(const sum_tile& from) {
  operand_tile<float> tile;
#pragma unroll
  for (int part = 0; part < tile.parts; ++part)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      tile.words[part][i] = ptx::cvt_rna_tf32_f32(from.values[part * 4 + i % 2 * 2 + i / 2]);
  return tile;
}

/// One half of the columns, one part of the rows: sums += left right.
template <class T>
__device__ void add_half(const std::uint32_t (&left)[4], std::uint32_t right_0, std::uint32_t right_1,
                         float* sums);
template <>
__device__ inline void add_half<bfloat16>(const std::uint32_t (&left)[4], std::uint32_t right_0,
                                          std::uint32_t right_1, float* sums) {
  ptx::mma_m16n8k16_bf16(left, right_0, right_1, sums);
}
template <>
__device__ inline void add_half<float16>(const std::uint32_t (&left)[4], std::uint32_t right_0,
                                         std::uint32_t right_1, float* sums) {
  ptx::mma_m16n8k16_f16(left, right_0, right_1, sums);
}
template <>
__device__ inline void add_half<float>(const std::uint32_t (&left)[4], std::uint32_t right_0,
                                       std::uint32_t right_1, float* sums) {
  ptx::mma_m16n8k8_tf32(left, right_0, right_1, sums);
}

/// sums += left right
template <class T>
__device__ void add_product(const operand_tile<T>& left, const operand_tile<T>& right, sum_tile& sums) {
#pragma unroll
  for (int part = 0; part < left.parts; ++part) {
    add_half<T>(left.words[part], right.words[part][0], right.words[part][1], sums.values);
    add_half<T>(left.words[part], right.words[part][2], right.words[part][3], sums.values + 4);
  }
}

/// Two to the power of `value`, to about 2 units in the last place; below 2^-126 it is 0.
__device__ inline float power_of_two(float value) { return ptx::ex2_approx_ftz(value); }

/// Begins to copy 16 bytes into shared memory; unless `there` they become 0, and `from` need only be some
/// address of global memory. Both are multiples of 16 bytes.
__device__ inline void begin_copy(void* to, const void* from, bool there) {
  ptx::cp_async_16(to, from, there ? 16 : 0);
}
/// Waits for the copies that this thread has begun.
__device__ inline void finish_copies() { ptx::cp_async_wait_all(); }

}  // namespace troupe::cuda
