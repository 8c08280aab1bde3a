#pragma once
#include <cstdint>
#include <vector>

#include "troupe/pipeline/detail/parameters/bucket_layout.hpp"

namespace troupe::detail {

/// Local SGD between the replicas of a pipeline stage. Each steps with its own gradients, and after every
/// `period` optimizer steps the replicas replace their weights by the mean over them (Stich 2019, "Local SGD
/// converges fast and communicates little"). The optimizers' states and the buffers are not averaged.
///
/// The mean is the sum over replicas, which they make as that of gradients, times 1 / number of replicas.
/// Not thread-safe.
class weight_average {
 public:
  /// Those of `weights` that are trainable; they outlive this object. period >= 1.
  weight_average(int period, std::vector<parameter*> weights);

  /// Whether the weights are averaged after optimizer step number `step`, from 0.
  bool is_due(std::uint64_t step) const { return (step + 1) % static_cast<std::uint64_t>(period_) == 0; }
  /// In how many buckets they travel; may be 0.
  int num_buckets() const;
  /// f32 [n] in CPU memory: of large weights views of their own memory.
  tensor values_of(int bucket) const;
  /// `parts`: the sums over `num_replicas` replicas, one part after the other.
  void take_sums(int bucket, const std::vector<tensor>& parts, int num_replicas) const;

 private:
  bool is_packed(int bucket) const { return static_cast<std::size_t>(bucket) == layout_.large.size(); }
  const bucket_layout::packed_bucket& packed() const { return layout_.packed.front(); }
  tensor pack() const;
  void unpack(const tensor& packed) const;

  int period_;
  std::vector<parameter*> weights_;
  bucket_layout layout_;
};

}  // namespace troupe::detail
