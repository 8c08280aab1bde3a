#pragma once
#include "troupe/nn/module.hpp"
#include "troupe/nn/synced_batch_norm.hpp"
#include "troupe/ops/batch_norm.hpp"

namespace troupe::nn {

/// (x - mean) / sqrt(variance + epsilon) * weight + bias for each channel: over the microbatch in training,
/// with the running statistics in evaluation (Ioffe, Szegedy 2015). x: [N, features, H, W].
class BatchNorm2d : public module_of<BatchNorm2d> {
 public:
  explicit BatchNorm2d(std::int64_t features, batch_norm_options options = {});
  variable forward(const variable& input) override;
  void each_parameter(const parameter_visitor& visit) override;
  void each_buffer(const buffer_visitor& visit) override;

  /// In training, computes the statistics over all members over which `sum` reduces; see SyncBatchNorm.
  void synchronize_statistics(sum_over_members sum) { sum_statistics_ = std::move(sum); }
  bool synchronizes_statistics() const { return sum_statistics_ != nullptr; }

 private:
  batch_norm_options options_;
  parameter weight_, bias_;
  buffer running_mean_, running_variance_;
  sum_over_members sum_statistics_ = nullptr;  // null: statistics of this process only
};

}  // namespace troupe::nn
