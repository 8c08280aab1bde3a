#pragma once
#include <functional>
#include <memory>
#include <string>

#include "troupe/autograd/functions.hpp"
#include "troupe/nn/module.hpp"
#include "troupe/optim/optimizer.hpp"

namespace troupe::bench {

/// A model, its optimizer and eight batches of made-up data: the same as in torch_compute.py, by the same
/// names.
struct compute_model {
  std::shared_ptr<nn::Module> module;  ///< its parameters are materialized
  optim::Optimizer optimizer;
  tensor inputs;           ///< [8, ...]
  tensor labels;           ///< i64 [8, items]
  std::string unit;        ///< "tokens" or "samples"
  std::int64_t items = 0;  ///< of that unit in a step
  double step_flops = 0;   ///< of the matrix products and convolutions in one step, 2 for a multiply-add
  std::int64_t classes = 0;
};

struct compute_model_options {
  std::string name = "gpt";
  device where = {};
  std::int64_t batch = 0;   ///< sequences or samples in a step; 0: the model's own number
  std::int64_t length = 0;  ///< of a sequence, up to the model's context, which is what 0 means
};

/// | name | model | batch | optimizer |
/// |---|---|---|---|
/// | gpt | 4 layers, 4 heads, width 256, context 128, 256 tokens | 8 | AdamW |
/// | gpt2 | GPT-2 124M with its 50,257 tokens padded to 50,304, context 1024 | 16 | AdamW |
/// | mlp | 784-2048-2048-10 | 256 | Adam |
/// | cnn | two convolutions and two linear layers | 128 | Adam |
/// | loop | the training loop in README.md: two residual layers of width 64 | 32 | AdamW |
///
/// torch_compute.py has no loop. Throws bad_input for another name, numbers out of range, and a device that
/// is not there.
compute_model make_compute_model(const compute_model_options& options);

/// What one step trains on.
struct compute_batch {
  tensor inputs, labels;
};
compute_batch batch_of(const compute_model& model, std::uint64_t number);

/// The loss of a batch through `forward`.
loss_result loss_of(const compute_model& model, const compute_batch& batch,
                    const std::function<variable(const variable&)>& forward);
/// The mean loss of training step `number`, from 0, through `forward`.
loss_result loss_of(compute_model& model, std::uint64_t number,
                    const std::function<variable(const variable&)>& forward);

/// The mean loss of training step `number`, from 0.
double train_step(compute_model& model, optim::optimizer_state& optimizer, std::uint64_t number);

}  // namespace troupe::bench
