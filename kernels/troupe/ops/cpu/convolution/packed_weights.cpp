#include "troupe/ops/cpu/convolution/packed_weights.hpp"

#include <algorithm>

namespace troupe::cpu {
namespace {

/// Floats from the panels of one block of the inner axis to those of the next.
std::int64_t block_step(std::int64_t rows, const product_loops& loops) {
  return packed_size(rows, loops.panel_rows, inner_block);
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

}  // namespace troupe::cpu
