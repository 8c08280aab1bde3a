#pragma once
#include <vector>

#include "troupe/nn/sequential.hpp"
#include "troupe/parallel/cut.hpp"
#include "troupe/parallel/numerics.hpp"

namespace troupe {

/// What the stages of a pipeline combine between the last weight gradient of a step and the optimizer's step.
struct stage_reductions {
  static constexpr int none = -1;
  int tied = none;                       ///< the gradients of tied weights that lie in several stages
  int norms = none;                      ///< the norms of the gradients, which are final by then
  std::vector<std::vector<int>> stages;  ///< plan::reductions
};

stage_reductions reductions_of(const nn::Sequential& model, const std::vector<stage_range>& cut,
                               const numerics& how);

}  // namespace troupe
