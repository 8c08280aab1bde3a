#pragma once
#include <memory>
#include <string>
#include <vector>

#include "troupe/data_parallel/comm_hook.hpp"
#include "troupe/data_parallel/hooks/step_count.hpp"
#include "troupe/gradients/gradient_compressor.hpp"

namespace troupe {

/// A hook whose gradients are sent by compressors, as those of a pipeline's replicas are: each virtual
/// replica has its own for each part of a bucket. The messages of a bucket's parts travel together, in as
/// many rounds as the compressor with the most has: floating messages are summed in the fixed tree over
/// replicas, the others gathered. A compressor's messages have the same number of elements in all replicas
/// and steps here.
///
/// Gradients must be in CPU memory.
class compressed_hook : public comm_hook {
 public:
  /// Throws std::invalid_argument for buckets on another device.
  void prepare(const std::vector<gradient_bucket>& buckets) override;
  std::unique_ptr<bucket_reduction> begin(gradient_bucket& bucket, communicator& group) override;
  /// The number of steps, what the compressors keep of each replica, named "replica.3/NAME" and independent
  /// of the bucket plan, and what they share.
  std::vector<named_tensor> state() override;

  /// Elements of a bucket that one compressor sends.
  struct segment {
    std::int64_t first = 0, count = 0;
    shape extents = {};  ///< of what has so many elements, in state()
    /// One for each replica of this member, in order; one at least: on a member without replicas it receives.
    /// A single one for all if it keeps nothing between message and sum.
    std::vector<std::unique_ptr<gradients::gradient_compressor>> compressors;

    gradients::gradient_compressor& of_replica(std::size_t index) const {
      return *compressors[compressors.size() == 1 ? 0 : index];
    }
  };

 protected:
  /// `function`: for errors. `state_prefix`: of the count of steps, "PREFIX.steps"; empty: it is not in
  /// state(). In the first `dense_steps` gradients travel whole.
  compressed_hook(std::string function, std::string state_prefix, std::int64_t dense_steps)
      : function_(std::move(function)), state_prefix_(std::move(state_prefix)), dense_steps_(dense_steps) {}
  /// Of one bucket, in ascending order, without overlap. `num_compressors`: of each segment, unless it has a
  /// single one.
  virtual std::vector<segment> segments_of(const gradient_bucket& bucket,
                                           std::size_t num_compressors) const = 0;

 private:
  std::string function_, state_prefix_;
  std::int64_t dense_steps_;
  step_count steps_;
  struct prepared_bucket {
    std::vector<segment> segments;
    std::vector<int> own_replicas;
  };
  std::vector<prepared_bucket> buckets_;
};

}  // namespace troupe
