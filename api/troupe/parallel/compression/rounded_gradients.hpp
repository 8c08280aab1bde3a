#pragma once
#include "troupe/parallel/comm_hook.hpp"

namespace troupe {

/// Gradients travel as bf16 or f16: half of the bytes. Each virtual replica's gradient is rounded, the
/// rounded ones are summed in f32 in the fixed tree, and the sum is rounded once more, so the bits do not
/// depend on who hosts the replicas. Members that host several send sums that are not rounded yet: they save
/// a quarter only. f16 has few exponents: gradients above 65,504 become infinite and those below 6e-8 zero.
///
///     replicated.register_comm_hook(std::make_shared<rounded_gradients>());
class rounded_gradients : public comm_hook {
 public:
  /// Throws std::invalid_argument for another dtype.
  explicit rounded_gradients(dtype type = dtype::bf16);
  void prepare(const std::vector<gradient_bucket>& buckets) override;
  std::unique_ptr<bucket_reduction> begin(gradient_bucket& bucket, communicator& group) override;

 private:
  dtype type_;
};

}  // namespace troupe
