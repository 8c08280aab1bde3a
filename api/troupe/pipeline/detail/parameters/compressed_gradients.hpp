#pragma once
#include <map>
#include <vector>

#include "troupe/gradients/factored_gradient.hpp"
#include "troupe/pipeline/detail/parameters/replica_buckets.hpp"
#include "troupe/pipeline/numeric_options.hpp"
#include "troupe/program/stage_program.hpp"

namespace troupe::detail {

/// The sizes of the two factors that PowerSGD of this rank sends of a parameter's gradient. They have rank 0
/// if it is sent whole: the parameter is not trainable, or not large (bucket_layout.hpp), or its factors have
/// more than half as many elements.
gradients::low_rank_factors power_sgd_factors_of(const parameter& of, int rank);

/// What one of several replicas sends of a stage's gradients, bucket by bucket, and what it makes of what
/// comes back, as the numeric_options say. It sends all elements in f32 or 16 bits, or of large gradients the
/// elements of largest magnitude (take_largest) or two factors (factored_gradient), one after the other.
///
/// Not thread-safe.
class compressed_gradients {
 public:
  /// Those of `parameters` that are trainable; they outlive this object. `by_use`: see layout_of.
  compressed_gradients(const numeric_options& numerics, std::vector<named_parameter> parameters,
                       const std::vector<std::size_t>& by_use);

  const replica_buckets& buckets() const { return buckets_; }
  /// Moves the gradients that are sent as they are to memory from `shared`, once.
  void share_memory(const program::stage_program::memory_source& shared);
  /// See stage_program::replica_gradients.
  tensor message_of(int bucket);
  /// The summed elements of a bucket in f32, one part after the other, from what the exchange gave. None if
  /// they come with another bucket.
  std::vector<tensor> sums_from(int bucket, const std::vector<tensor>& received);
  /// Whether this replica had a gradient of a parameter with buckets of its own, which have left.
  bool had_gradient(std::size_t index) const { return had_gradient_[index]; }
  /// At the end of a step, and of an interrupted one.
  void end_step();

  /// What this replica has not sent yet, and the factors to begin the next step with.
  std::vector<named_tensor> state() const;

 private:
  bool is_first_of_its_parameter(int bucket) const;
  bool is_sparse(int bucket) const {
    return numerics_.exchange.top_k_gradients > 0 && !buckets_.is_packed(bucket);
  }
  gradients::factored_gradient* factored(int bucket);
  tensor take_largest_of(int bucket);
  tensor factor_of(int bucket, gradients::factored_gradient& factors);

  numeric_options numerics_;
  std::vector<named_parameter> parameters_;
  std::map<std::size_t, gradients::factored_gradient> factored_;  ///< by index of the parameter
  replica_buckets buckets_;
  std::map<std::size_t, tensor> residuals_;  ///< with top_k_gradients, likewise
  bool has_shared_memory_ = false;           ///< share_memory was called
  std::vector<bool> had_gradient_;           ///< [parameters_] in this step
};

}  // namespace troupe::detail
