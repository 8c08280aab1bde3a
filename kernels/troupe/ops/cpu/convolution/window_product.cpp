#include "troupe/ops/cpu/convolution/window_product.hpp"

#include <algorithm>
#include <array>

namespace troupe::cpu {
namespace {

/// Floats from the panels of one block of the inner axis to those of the next.
std::int64_t block_step(std::int64_t rows, const product_loops& loops) {
  return packed_size(rows, loops.panel_rows, inner_block);
}

using runs_of_panel = std::array<lane_run, static_cast<std::size_t>(panel_gap)>;

/// Windows that follow each other in a row of the image. Returns the number of runs.
std::size_t find_runs(const window_matrix& from, std::int64_t first_window, std::int64_t num_windows,
                      runs_of_panel& runs) {
  std::size_t count = 0;
  for (std::int64_t lane = 0; lane < num_windows;) {
    auto window = first_window + lane;
    runs[count++] = {lane, from.offset_of(window)};
    lane += from.windows.w - window % from.windows.w;
  }
  return count;
}

}  // namespace

packed_weights::packed_weights(const float* weights, std::int64_t rows, std::int64_t inner,
                               const product_loops& loops)
    : rows_(rows), inner_(inner), loops_(&loops) {
  auto step = block_step(rows, loops), blocks = (inner + inner_block - 1) / inner_block;
  panels_ = tensor::empty({blocks * step});
  auto* to = panels_.values<float>().data();
  for (std::int64_t k = 0; k < inner; k += inner_block, to += step)
    loops.pack_rows({.elements = weights + k,
                     .lanes = rows,
                     .inner = std::min(inner_block, inner - k),
                     .lane_step = inner,
                     .inner_step = 1},
                    to);
}

void packed_weights::multiply(const float* b, std::int64_t columns, std::int64_t first_inner,
                              const block_target& to) const {
  auto target = to.of_block(first_inner == 0, first_inner + inner_block >= inner_);
  const auto* a = panels_.values<float>().data() + first_inner / inner_block * block_step(rows_, *loops_);
  loops_->multiply_packed({a, b, rows_, columns, std::min(inner_block, inner_ - first_inner)}, target);
}

void pack_windows(const window_matrix& from, std::int64_t first_window, std::int64_t num_windows,
                  std::int64_t first_tap, std::int64_t inner, const product_loops& loops, float* to) {
  runs_of_panel runs;
  auto count = find_runs(from, first_window, num_windows, runs);
  loops.pack_gathered({from.planes, from.taps + first_tap, inner, std::span(runs).first(count)}, to);
}

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
