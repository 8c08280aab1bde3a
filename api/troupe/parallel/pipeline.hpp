#pragma once
#include "troupe/nn/cross_entropy.hpp"
#include "troupe/nn/loss.hpp"
#include "troupe/nn/sequential.hpp"
#include "troupe/optim/adam.hpp"
#include "troupe/optim/optimizer.hpp"
#include "troupe/schedule/plan.hpp"

namespace troupe {

/// A model cut into stages, and how its microbatches go through them. A description: nothing is allocated
/// until a Trainer runs it.
///
///     auto pipeline = Pipeline(model).stages(4).microbatches(8).schedule(schedule_kind::one_f_one_b)
///                         .loss(nn::CrossEntropy()).optimizer(optim::Adam({.lr = 1e-3}));
class Pipeline {
 public:
  explicit Pipeline(nn::Sequential model) : model_(std::move(model)) {}

  /// Contiguous pieces of about equal cost; 0 (the default): one per device.
  Pipeline& stages(int count);
  /// Equal parts of each batch. More: less idle time, smaller matrices. Must divide the batch.
  Pipeline& microbatches(int count);
  Pipeline& schedule(schedule_kind kind);
  /// CrossEntropy unless another is given. Throws std::invalid_argument if it is empty.
  Pipeline& loss(nn::Loss loss);
  Pipeline& optimizer(optim::Optimizer optimizer);

  const nn::Sequential& model() const { return model_; }
  int stages() const { return stages_; }
  int microbatches() const { return microbatches_; }
  schedule_kind schedule() const { return schedule_; }
  const nn::Loss& loss() const { return loss_; }
  const optim::Optimizer& optimizer() const { return optimizer_; }

 private:
  nn::Sequential model_;
  int stages_ = 0;
  int microbatches_ = 1;
  schedule_kind schedule_ = schedule_kind::one_f_one_b;
  nn::Loss loss_ = nn::CrossEntropy();
  optim::Optimizer optimizer_ = optim::Adam();
};

}  // namespace troupe
