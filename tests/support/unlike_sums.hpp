#pragma once
#include <vector>

namespace troupe::testing {

/// Four numbers whose f32 sum has other bits in each order: (a + b) + (c + d), which is the tree's, one after
/// the other, (a + c) + (b + d) and (b + c) + (d + a).
inline std::vector<float> unlike_sums() { return {700, 7e7F, -5e7F, -2}; }

}  // namespace troupe::testing
