#pragma once
#include <cstdint>

// All inline PTX: one function per instruction, named after it. See the PTX ISA for their effects and for the
// distribution of matrix elements over the threads of a warp ("Warp Level Matrix Instructions"). They need
// compute capability 8.0. elements.cuh and tensor_core.cuh provide typed wrappers. Tests replace this file by
// an emulation on the CPU (tests/support/cuda_emulation).

namespace troupe::cuda::ptx {

/// The f32 value of the bits of an f16.
__device__ inline float cvt_f32_f16(std::uint16_t bits) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(bits));
  return result;
}

/// The bits of the nearest bf16, ties to even.
__device__ inline std::uint16_t cvt_rn_bf16_f32(float value) {
  std::uint16_t result;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result) : "f"(value));
  return result;
}
/// The bits of the nearest f16, ties to even.
__device__ inline std::uint16_t cvt_rn_f16_f32(float value) {
  std::uint16_t result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result) : "f"(value));
  return result;
}

/// Two bf16, `upper` in the upper half of the word.
__device__ inline std::uint32_t cvt_rn_bf16x2_f32(float upper, float lower) {
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(upper), "f"(lower));
  return pair;
}
/// Two f16, `upper` in the upper half of the word.
__device__ inline std::uint32_t cvt_rn_f16x2_f32(float upper, float lower) {
  std::uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(upper), "f"(lower));
  return pair;
}

/// The bits of the nearest TF32, which is an f32 whose lowest 13 bits are 0; ties away from zero.
__device__ inline std::uint32_t cvt_rna_tf32_f32(float value) {
  std::uint32_t result;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(result) : "f"(value));
  return result;
}

/// Two to the power of `value`, to about 2 units in the last place; results below 2^-126 are 0.
__device__ inline float ex2_approx_ftz(float value) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
}

/// An address in shared memory as instructions take it.
__device__ inline std::uint32_t shared_address(const void* in_shared_memory) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(in_shared_memory));
}

/// Loads four 8 x 8 matrices of 16-bit elements from shared memory. Lane i of the warp gives the address of
/// row i % 8 of matrix i / 8, a multiple of 16 bytes; words[m] receives two elements of matrix m.
__device__ inline void ldmatrix_x4(std::uint32_t (&words)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(shared_address(row)));
}
/// As ldmatrix_x4, each matrix transposed.
__device__ inline void ldmatrix_x4_trans(std::uint32_t (&words)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(shared_address(row)));
}

/// sums [16, 8] += left [16, 16] right [16, 8], with factors of bf16 and sums of f32.
__device__ inline void mma_m16n8k16_bf16(const std::uint32_t (&left)[4], std::uint32_t right_0,
                                         std::uint32_t right_1, float* sums) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right_0), "r"(right_1));
}
/// As mma_m16n8k16_bf16, with factors of f16.
__device__ inline void mma_m16n8k16_f16(const std::uint32_t (&left)[4], std::uint32_t right_0,
                                        std::uint32_t right_1, float* sums) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right_0), "r"(right_1));
}

/// sums [16, 8] += left [16, 8] right [8, 8], with factors of TF32 and sums of f32.
__device__ inline void mma_m16n8k8_tf32(const std::uint32_t (&left)[4], std::uint32_t right_0,
                                        std::uint32_t right_1, float* sums) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right_0), "r"(right_1));
}

/// Begins to copy 16 bytes from global to shared memory; the last 16 - source_bytes of them become 0 instead.
/// Both addresses are multiples of 16 bytes.
__device__ inline void cp_async_16(void* to, const void* from, int source_bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(shared_address(to)), "l"(from), "r"(source_bytes)
               : "memory");
}
/// Waits for the copies that this thread has begun.
__device__ inline void cp_async_wait_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }

}  // namespace troupe::cuda::ptx
