#pragma once
#include <cstdint>

namespace troupe::cpu {

/// f32 elements of one side of a product: `lanes` rows of A or columns of B, `inner` elements of each. One of
/// the steps, in elements, is 1.
struct strided_block {
  const float* elements = nullptr;
  std::int64_t lanes = 0, inner = 0;
  std::int64_t lane_step = 0, inner_step = 0;
};

}  // namespace troupe::cpu
