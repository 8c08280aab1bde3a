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

  /// In training the statistics are those of all members that `sum` adds over; see SyncBatchNorm.
  void synchronise(sum_over_members sum) { sum_ = std::move(sum); }
  bool is_synchronised() const { return sum_ != nullptr; }

 private:
  batch_norm_options options_;
  parameter weight_, bias_;
  buffer running_mean_, running_variance_;
  sum_over_members sum_ = nullptr;  // none: each process by itself
};

}  // namespace troupe::nn
