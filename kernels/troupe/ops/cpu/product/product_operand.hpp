#pragma once

#include <cstddef>
#include <cstdint>

#include "troupe/tensor/dtype.hpp"

namespace troupe::cpu {

/// f32 elements of one side of a product: `lanes` rows of A or columns of B, `inner` elements of each. One of
/// the steps, in elements, is 1.
struct strided_block {
  const float* elements = nullptr;
  std::int64_t lanes = 0, inner = 0;
  std::int64_t lane_step = 0, inner_step = 0;
};

/// A range of lanes (rows of A or columns of B) and of the inner axis.
struct operand_range {
  std::int64_t first_lane = 0, lanes = 0;
  std::int64_t first_inner = 0, inner = 0;
};

/// One side of a product: a matrix of f32, bf16 or f16. One of the steps, in elements, is 1.
struct product_operand {
  const std::byte* elements = nullptr;
  troupe::dtype dtype = troupe::dtype::f32;
  std::int64_t lane_step = 0, inner_step = 0;

  /// Whether elements that follow each other along the inner axis do so in memory; otherwise those of
  /// neighbouring lanes do.
  bool inner_is_contiguous() const { return inner_step == 1; }

  /// Floats of scratch that `read` needs for each element: none in f32.
  std::int64_t scratch_per_element() const { return dtype == troupe::dtype::f32 ? 0 : 1; }

  /// A part as f32: in place, or widened into `scratch`.
  strided_block read(const operand_range& part, float* scratch) const;
};

}  // namespace troupe::cpu
