#pragma once
#include "troupe/ops/cpu/convolution/packed_weights.hpp"
#include "troupe/ops/cpu/convolution/window_panels.hpp"

namespace troupe::cpu {

/// Part `index` of `count`, nearly equal ones.
struct image_part {
  std::int64_t index = 0, count = 1;
};

/// C[., w] = weights times window w, for the windows of a part of an image. Runs on the calling thread.
void multiply_windows(const packed_weights& weights, const window_matrix& windows, const image_part& part,
                      const block_target& to, const product_loops& loops);

}  // namespace troupe::cpu
