#pragma once

namespace troupe {

/// How GPUs multiply f32 matrices.
/// - f32: products and sums in f32.
/// - tf32: operands rounded to the 10 bits after the point that TF32 has, sums in f32. Several times as fast
///   on tensor cores (8.0 and later), with relative errors of about 1e-3 of each product.
enum class matmul_precision { f32, tf32 };

/// Sets the precision of later f32 matrix products of this process on GPUs, also in linear layers and
/// attention with heads of at most 64 elements, but not in convolutions; the default is f32. `numeric_class`
/// contains tf32. The CPU always computes in f32. Captured graphs keep the precision of their capture.
/// Thread-safe.
void set_matmul_precision(matmul_precision precision);
matmul_precision current_matmul_precision();

}  // namespace troupe
