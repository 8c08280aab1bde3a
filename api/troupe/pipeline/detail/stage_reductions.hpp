#pragma once
#include <vector>

#include "troupe/nn/graph.hpp"
#include "troupe/pipeline/numeric_options.hpp"
#include "troupe/pipeline/partition.hpp"

namespace troupe::detail {

/// The reductions over stages between the last weight gradient of a step and the optimizer's step.
struct stage_reductions {
  static constexpr int none = -1;
  int tied = none;                       ///< index of the reduction of tied weights' gradients over stages
  int norms = none;                      ///< index of the reduction of gradient norms; runs after `tied`
  std::vector<std::vector<int>> stages;  ///< plan::reductions
  /// plan::reductions_before_all_reduce: each replica adds up tied weights by itself.
  int num_before_all_reduce() const { return tied == none ? 0 : tied + 1; }
};

stage_reductions reductions_of(const nn::Graph& model, const std::vector<stage_range>& partition,
                               const numeric_options& numerics);

}  // namespace troupe::detail
