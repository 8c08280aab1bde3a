#include "troupe/ops/cpu/convolution/window_product.hpp"

#include <algorithm>

namespace troupe::cpu {
namespace {

/// Windows that are packed at once: with 256 taps, 256 KiB, which stay in the L2 cache.
constexpr std::int64_t windows_at_once = 256;

}  // namespace

void multiply_windows(const packed_weights& weights, const window_matrix& windows, const image_part& part,
                      const block_target& to, const product_loops& loops) {
  auto all = windows.windows.h * windows.windows.w, panels_of_all = (all + 31) / 32;
  auto begin = std::min(all, panels_of_all * part.index / part.count * 32),
       end = std::min(all, panels_of_all * (part.index + 1) / part.count * 32), count = end - begin;
  if (count == 0) return;
  auto panels = tensor::empty({packed_size(std::min(count, windows_at_once), loops.panel_columns,
                                           std::min(weights.inner(), inner_block))});
  auto* b = panels.values<float>().data();
  for (auto window = begin; window < end; window += windows_at_once)
    for (std::int64_t k = 0; k < weights.inner(); k += inner_block) {
      auto columns = std::min(windows_at_once, end - window);
      pack_windows(windows, window, columns, k, std::min(inner_block, weights.inner() - k), loops, b);
      weights.multiply(b, columns, k, to.from(0, window));
    }
}

}  // namespace troupe::cpu
