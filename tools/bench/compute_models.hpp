#pragma once
#include <memory>
#include <string>

#include "troupe/nn/module.hpp"
#include "troupe/optim/optimizer.hpp"

namespace troupe::bench {

/// A model, its optimizer and eight batches of made-up data: the same as in torch_compute.py, by the same
/// names.
struct compute_model {
  std::shared_ptr<nn::Module> module;  ///< materialized
  optim::Optimizer optimizer;
  tensor inputs;           ///< [8, ...]
  tensor labels;           ///< i64 [8, items]
  std::string unit;        ///< "tokens" or "samples"
  std::int64_t items = 0;  ///< of that unit in a step
  double step_flops = 0;   ///< of the matrix products and convolutions in one step, 2 for a multiply-add
  std::int64_t classes = 0;
};

/// gpt: 4 layers, 4 heads, width 256, context 128, 256 tokens, batch 8, AdamW; mlp: 784-2048-2048-10, batch
/// 256, Adam; cnn: two convolutions and two linear layers, batch 128, Adam. Throws bad_input for another
/// name.
compute_model make_compute_model(const std::string& name);

/// The mean loss of training step `number`, from 0.
double train_step(compute_model& model, optim::optimizer_state& optimizer, std::uint64_t number);

}  // namespace troupe::bench
