#pragma once
#include <cstdint>

#include "support/cuda_emulation/execution/call.hpp"

namespace troupe::emulation {

/// ldmatrix.x4 of 16-bit elements, with .trans or without: words[m] receives the elements of matrix m that
/// the PTX ISA gives this lane. Fails unless `row` is a multiple of 16 bytes.
enum class matrix_form { as_stored, transposed };
void load_matrices(const call& by, matrix_form form, std::uint32_t (&words)[4], const void* row);

/// The factors of mma.
enum class factor_type { bf16, f16, tf32 };

/// mma.m16n8k16.row.col: sums [16, 8] += left [16, 16] right [16, 8], from k = 0 to 15, or with TF32
/// mma.m16n8k8, with half the depth; each product and each sum rounded to f32. A GPU rounds in ways of its
/// own, so tests compare with a tolerance.
void multiply_matrices(const call& by, factor_type type, const std::uint32_t (&left)[4],
                       std::uint32_t right_0, std::uint32_t right_1, float* sums);

}  // namespace troupe::emulation
