#pragma once
#include <cstdint>

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

  /// Over whose samples statistics are computed in training.
  enum class statistics_of : std::uint8_t {
    microbatch,  ///< samples of the microbatch on this process
    group,       ///< those of all members of a process group
    replicas     ///< those of all replicas of a pipeline
  };
  /// Over all members over which `sum` reduces; see SyncBatchNorm.
  void synchronize_statistics(sum_over_members sum);
  /// Over the replicas of the pipeline that trains the model (add_up_over_replicas).
  void synchronize_over_replicas();
  statistics_of statistics() const { return statistics_of_; }

 private:
  batch_norm_options options_;
  parameter weight_, bias_;
  buffer running_mean_, running_variance_;
  statistics_of statistics_of_ = statistics_of::microbatch;
  sum_over_members sum_statistics_ = nullptr;  // null: those of the microbatch
};

}  // namespace troupe::nn
