#pragma once
#include "troupe/config/job_options.hpp"
#include "troupe/nn/cross_entropy.hpp"
#include "troupe/nn/loss.hpp"
#include "troupe/nn/sequential.hpp"
#include "troupe/optim/adam.hpp"
#include "troupe/optim/optimizer.hpp"
#include "troupe/parallel/numerics.hpp"
#include "troupe/schedule/plan.hpp"

namespace troupe {

/// A model cut into stages, and how its microbatches go through them. A description: nothing is allocated
/// until a Trainer runs it.
///
///     auto pipeline = Pipeline(model).stages(4).microbatches(8).schedule(schedule_kind::one_f_one_b)
///                         .loss(nn::CrossEntropy()).optimizer(optim::Adam({.lr = 1e-3}));
///
/// or with what the user of the program says:
///
///     auto pipeline = Pipeline(model, options).optimizer(optim::Adam({.lr = options.learning_rate}));
class Pipeline {
 public:
  /// A model that was materialized begins with the weights it has (as with begin_with, and whatever --seed
  /// says); one that is only described, with initial values from --seed. Throws bad_input for a model of
  /// which a part is materialized.
  explicit Pipeline(nn::Sequential model);
  /// With what the options say of a pipeline: stages, microbatches, schedule, precision, clip_grad_norm and
  /// loss_scale. Throws bad_input as the setters do.
  Pipeline(nn::Sequential model, const job_options& options);

  /// Contiguous pieces of about equal cost; 0 (the default): one per device.
  Pipeline& stages(int count);
  /// Equal parts of each batch. More: less idle time, smaller matrices. Must divide the batch.
  Pipeline& microbatches(int count);
  Pipeline& schedule(schedule_kind kind);
  /// CrossEntropy unless another is given. Throws std::invalid_argument if it is empty.
  Pipeline& loss(nn::Loss loss);
  /// Adam unless another is given. Throws std::invalid_argument if it is empty.
  Pipeline& optimizer(optim::Optimizer optimizer);
  /// Weights to begin with instead of initial ones, or instead of the model's: all parameters and buffers of
  /// the model (its state_dict), which every process must give alike. A job that resumes takes those of its
  /// snapshot.
  Pipeline& begin_with(std::vector<named_tensor> weights);
  /// In what products compute: f32 (the default), bf16, or f16, which scales the loss. Throws bad_input for
  /// another dtype.
  Pipeline& precision(dtype type);
  /// The most that the norm of all gradients of the model may be; 0 (the default): not clipped. Throws
  /// bad_input for negative and infinite numbers.
  Pipeline& clip_grad_norm(double max_norm);
  /// How the scale of the loss begins and changes in f16. Throws std::invalid_argument as loss_scaler does.
  Pipeline& loss_scale(optim::loss_scaler_options options);

  const nn::Sequential& model() const { return model_; }
  int stages() const { return stages_; }
  int microbatches() const { return microbatches_; }
  schedule_kind schedule() const { return schedule_; }
  const nn::Loss& loss() const { return loss_; }
  const optim::Optimizer& optimizer() const { return optimizer_; }
  /// Null: none.
  const std::shared_ptr<const std::vector<named_tensor>>& begin_with() const { return begin_with_; }
  const numerics& how() const { return how_; }

 private:
  nn::Sequential model_;
  int stages_ = 0;
  int microbatches_ = 1;
  schedule_kind schedule_ = schedule_kind::one_f_one_b;
  nn::Loss loss_ = nn::CrossEntropy();
  optim::Optimizer optimizer_ = optim::Adam();
  std::shared_ptr<const std::vector<named_tensor>> begin_with_;
  numerics how_;
};

}  // namespace troupe
