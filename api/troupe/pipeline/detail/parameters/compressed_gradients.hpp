#pragma once
#include <memory>
#include <vector>

#include "troupe/gradients/gradient_compressor.hpp"
#include "troupe/gradients/low_rank_factors.hpp"
#include "troupe/pipeline/detail/parameters/replica_buckets.hpp"
#include "troupe/pipeline/numeric_options.hpp"
#include "troupe/program/stage_program.hpp"

namespace troupe::detail {

/// The sizes of the two factors that PowerSGD of this rank sends of a parameter's gradient. They have rank 0
/// if it is sent whole: the parameter is not trainable, or not large (bucket_layout.hpp), or its factors have
/// more than half as many elements.
gradients::low_rank_factors power_sgd_factors_of(const parameter& one, int rank);

/// Moves the gradients of these parameters, of those in the memory of the CPU, to memory from `shared`.
void share_memory_of(const std::vector<parameter*>& parameters,
                     const program::stage_program::memory_source& shared);

/// What one of several replicas sends of a stage's gradients, bucket by bucket, and what it makes of what
/// comes back: small gradients whole, each large one by the compressor that the numeric_options say.
///
/// Not thread-safe.
class compressed_gradients {
 public:
  /// Those of `parameters` that are trainable; they outlive this object. `by_use`: see layout_of.
  /// `owners`: see layout_of.
  compressed_gradients(const numeric_options& numerics, std::vector<named_parameter> parameters,
                       const std::vector<std::size_t>& by_use, bucket_owners owners = {});

  const replica_buckets& buckets() const { return buckets_; }
  /// Whether the gradient of a parameter is sent as it is, from where it lies.
  bool sends_in_place(std::size_t index) const {
    return compressors_[index] && compressors_[index]->sends_in_place();
  }
  /// See stage_program::bucket.
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
  gradients::gradient_compressor& compressor_of(int bucket) const;
  gradients::gradient_part part_of(int bucket) const;

  std::vector<named_parameter> parameters_;
  std::unique_ptr<gradients::gradient_compressor> of_packed_;
  /// [parameters_] null: it is small, or not trainable.
  std::vector<std::unique_ptr<gradients::gradient_compressor>> compressors_;
  replica_buckets buckets_;
  std::vector<bool> had_gradient_;  ///< [parameters_] in this step
};

}  // namespace troupe::detail
