#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

// x of any shape in f32, bf16 or f16; sums are in f32 over blocks of fixed sizes, which are combined in a
// fixed tree, and rounded once at the end. Other dtypes, axes that do not exist or are given twice, and
// tensors on different devices throw std::invalid_argument.

struct reduction_options {
  std::vector<int> axes = {};  ///< none: all; negative axes count from the end
  bool keep_axes = false;      ///< reduced axes stay with extent 1, so that the result broadcasts against x
};

/// Results have x's dtype. The sum of no elements is 0; the other functions throw for an empty range.
tensor sum(const tensor& x, const reduction_options& options = {});
tensor mean(const tensor& x, const reduction_options& options = {});
/// NaN if an element is NaN.
tensor max(const tensor& x, const reduction_options& options = {});
tensor min(const tensor& x, const reduction_options& options = {});

/// The index (i64) of the largest element along the one axis in `options`, or in the flattened x without
/// axes. The first of equal elements; NaN counts as the largest.
tensor argmax(const tensor& x, const reduction_options& options = {});

// Reductions over whole tensors, in f64; several tensors are treated as one vector.

double total_sum(const tensor& x);

/// The square root of the sum of the squares. Infinite or NaN if an element is.
double global_norm(std::span<const tensor> tensors);

/// How many elements' squares are added up together, in one place wherever the elements are.
constexpr std::int64_t squares_block_elements = 16384;

/// How many blocks of squares_block_elements x has, the rest counted as one.
inline std::int64_t num_squares_blocks(const tensor& x) {
  return (x.num_elements() + squares_block_elements - 1) / squares_block_elements;
}

/// The sum of the squares of each block of each tensor (num_squares_blocks), one tensor after the other, in
/// row-major order. Added up in order, those of one tensor are the square of its global_norm, on the CPU with
/// the same bits.
std::vector<double> block_squares(std::span<const tensor> tensors);

/// Whether no element is infinite or NaN.
bool all_finite(std::span<const tensor> tensors);

/// Multiplies all elements, in place, and returns whether all of them are finite afterwards.
bool scale_all(std::span<const tensor> tensors, double factor);

/// Multiplies the gradients by clipping_factor, in place, and returns their norm before. Throws unless
/// max_norm > 0.
double clip_by_global_norm(std::span<const tensor> gradients, double max_norm);

/// max_norm / (norm + 1e-6) if that is below 1 (PyTorch's formula), and else 1; also 1 for a norm that is not
/// finite.
double clipping_factor(double norm, double max_norm);

}  // namespace troupe
