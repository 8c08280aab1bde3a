#include "troupe/ops/cpu/convolution/window_product.hpp"

#include <algorithm>

namespace troupe::cpu {

void multiply_windows(const packed_weights& weights, const window_matrix& windows, const image_part& part,
                      const block_target& to, const product_loops& loops) {
  auto all = windows.windows.h * windows.windows.w, panels_of_all = (all + 31) / 32;
  auto begin = std::min(all, panels_of_all * part.index / part.count * 32),
       end = std::min(all, panels_of_all * (part.index + 1) / part.count * 32);
  // One panel at a time, which stays in the L1 cache.
  const auto at_once = loops.panel_columns;
  auto panels =
      tensor::empty({packed_size(at_once, loops.panel_columns, std::min(weights.inner(), inner_block))});
  auto* b = panels.values<float>().data();
  for (auto window = begin; window < end; window += at_once)
    for (std::int64_t k = 0; k < weights.inner(); k += inner_block) {
      auto columns = std::min(at_once, end - window);
      pack_windows(windows, window, columns, k, std::min(inner_block, weights.inner() - k), loops, b);
      weights.multiply(b, columns, k, to.from(0, window));
    }
}

}  // namespace troupe::cpu
