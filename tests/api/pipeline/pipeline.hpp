#pragma once
#include <memory>
#include <vector>

#include "api/pipeline/tested_programs.hpp"
#include "support/random_tensor.hpp"
#include "troupe/nn/activation.hpp"
#include "troupe/nn/cross_entropy.hpp"
#include "troupe/nn/flatten.hpp"
#include "troupe/nn/linear.hpp"
#include "troupe/nn/to_float.hpp"
#include "troupe/optim/adam.hpp"
#include "troupe/pipeline/detail/module_program.hpp"
#include "troupe/pipeline/detail/stage_reductions.hpp"

namespace troupe::testing {

constexpr int num_microbatches = 4;
constexpr std::int64_t microbatch_size = 5, num_classes = 3;

inline nn::Sequential four_layer_model() {
  return nn::Sequential(nn::ToFloat(), nn::Flatten(), nn::Linear(12, 17), nn::ReLU(), nn::Linear(17, 9),
                        nn::ReLU(), nn::Linear(9, 13), nn::ReLU(), nn::Linear(13, num_classes));
}

/// Bytes that differ by step and microbatch.
inline tensor make_images(std::uint64_t step, int index) {
  auto noise = random_tensor({microbatch_size, 3, 4}, std::to_string(step) + "/" + std::to_string(index));
  auto images = tensor::empty(noise.shape(), dtype::u8);
  for (std::size_t i = 0; i < images.values<std::uint8_t>().size(); ++i)
    images.values<std::uint8_t>()[i] = static_cast<std::uint8_t>(127 + 120 * noise.values<float>()[i]);
  return images;
}

inline tensor make_labels(std::uint64_t step, int index) {
  auto labels = tensor::empty({microbatch_size}, dtype::i64);
  for (std::int64_t i = 0; i < microbatch_size; ++i)
    labels.values<std::int64_t>()[static_cast<std::size_t>(i)] =
        (i * i + index + static_cast<std::int64_t>(step)) % num_classes;
  return labels;
}

/// One stage of a chain: its output, or an undefined tensor if it computes the loss.
inline tensor forward_of(program::stage_program& stage, const program::microbatch& mb, tensor input,
                         tensor labels) {
  auto outputs = stage.forward(mb, {std::move(input)}, std::move(labels));
  return outputs.empty() ? tensor() : outputs[0];
}

/// One stage of a chain: its input's gradient, or an undefined tensor if it takes the samples. An undefined
/// `gradient` is that of the stage that computes the loss.
inline tensor input_gradient_of(program::stage_program& stage, const program::microbatch& mb,
                                tensor gradient) {
  auto gradients =
      stage.backward_input(mb, gradient.defined() ? std::vector{std::move(gradient)} : std::vector<tensor>());
  return gradients.empty() ? tensor() : gradients[0];
}

/// All stages of a model in one thread: each call does one action of one microbatch through every stage.
class pipeline {
 public:
  explicit pipeline(int num_stages, optim::Optimizer optimizer = optim::Adam({.lr = 0.01}),
                    nn::Sequential model = four_layer_model(), numeric_options numerics = {})
      : reductions_(detail::reductions_of(model, partition_into_stages(model, num_stages), numerics).all) {
    auto make = programs_of(std::move(model), num_stages,
                            {.optimizer = std::move(optimizer), .seed = 42, .numerics = numerics});
    for (int stage = 0; stage < num_stages; ++stage) stages.push_back(make({.stage = stage}));
  }

  void forward(std::uint64_t step, int index) {
    forward(which(step, index), make_images(step, index), make_labels(step, index));
  }
  void forward(const program::microbatch& mb, tensor value, tensor labels) {
    for (auto& stage : stages)
      value = forward_of(*stage, mb, value, stage == stages.back() ? labels : tensor());
  }
  void backward_input(std::uint64_t step, int index) {
    tensor gradient;
    for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage)
      gradient = input_gradient_of(**stage, which(step, index), gradient);
  }
  void backward_weight(std::uint64_t step, int index) {
    for (auto& stage : stages) stage->backward_weight(which(step, index));
  }
  /// One action of one stage alone: input gradient and weight gradient together.
  void backward(std::uint64_t step, int index) {
    tensor gradient;
    for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
      gradient = input_gradient_of(**stage, which(step, index), gradient);
      (*stage)->backward_weight(which(step, index));
    }
  }
  /// The reductions, then the optimizers' steps.
  void apply(std::uint64_t step) {
    for (std::size_t index = 0; index < reductions_.size(); ++index) {
      std::vector<tensor> partials;
      for (int stage : reductions_[index].stages)
        partials.push_back(at(stage).partial_for_reduction(static_cast<int>(index)));
      for (int stage : reductions_[index].stages) at(stage).reduce(static_cast<int>(index), partials);
    }
    for (auto& stage : stages) stage->apply(step);
  }
  void train_step(std::uint64_t step) {
    for (int index = 0; index < num_microbatches; ++index) forward(step, index);
    for (int index = 0; index < num_microbatches; ++index) backward(step, index);
    apply(step);
  }
  /// The parameters of all stages, in the memory of the CPU.
  std::vector<named_tensor> parameters() {
    std::vector<named_tensor> all;
    for (auto& stage : stages)
      for (auto& each : stage->parameters()) all.push_back({each.name, each.value.to({}).clone()});
    return all;
  }
  program::step_metrics take_metrics() { return stages.back()->take_metrics(); }

  program::stage_program& at(int stage) { return *stages[static_cast<std::size_t>(stage)]; }
  static program::microbatch which(std::uint64_t step, int index) {
    return {step, index, num_microbatches, true};
  }

  std::vector<std::unique_ptr<program::stage_program>> stages;

 private:
  std::vector<schedule::reduction> reductions_;
};

}  // namespace troupe::testing
