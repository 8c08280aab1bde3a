#pragma once
#include <vector>

#include "troupe/nn/graph.hpp"
#include "troupe/pipeline/numeric_options.hpp"
#include "troupe/pipeline/partition.hpp"
#include "troupe/schedule/plan.hpp"

namespace troupe::detail {

/// The reductions over stages between the last weight gradient of a step and the optimizer's step.
struct stage_reductions {
  static constexpr int none = -1;
  /// Index of the reduction of tied weights' gradients over stages. Comes before the sums over replicas,
  /// since each adds up tied weights by itself.
  int tied = none;
  int norms = none;                           ///< index of the reduction of gradient norms; runs after `tied`
  std::vector<schedule::reduction> all = {};  ///< plan_options::reductions
};

/// Where replicas own shards they combine their norms.
stage_reductions reductions_of(const nn::Graph& model, const std::vector<stage_range>& partition,
                               const numeric_options& numerics);

}  // namespace troupe::detail
