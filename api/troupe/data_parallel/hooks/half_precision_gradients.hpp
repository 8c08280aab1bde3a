#pragma once
#include "troupe/data_parallel/hooks/compressed_hook.hpp"

namespace troupe {

/// Sends gradients as bf16 or f16, half of the bytes (PyTorch's bf16_compress_hook and fp16_compress_hook).
/// Each virtual replica's gradient is rounded, the rounded gradients are summed in f32 in the fixed tree, and
/// the sum is rounded again, so the bits do not depend on which member hosts which replica. Members that host
/// several replicas send f32 sums in the first phase, and so save a quarter only. In f16, gradients above
/// 65,504 become infinite and those below 6e-8 become zero.
///
///     replicated.register_comm_hook(std::make_shared<half_precision_gradients>());
class half_precision_gradients : public compressed_hook {
 public:
  /// Throws std::invalid_argument for another dtype.
  explicit half_precision_gradients(dtype type = dtype::bf16);

 private:
  std::vector<segment> segments_of(const gradient_bucket& bucket, std::size_t num_compressors) const override;

  dtype type_;
};

}  // namespace troupe
