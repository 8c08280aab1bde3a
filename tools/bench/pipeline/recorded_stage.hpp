#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "troupe/program/stage_program.hpp"
#include "troupe/schedule/simulation/simulate.hpp"

namespace troupe::bench {

/// What the stages of one device computed in one step, in order: F, I, W and A. Times are of the steady
/// clock, in ms.
using recorded_step = std::vector<timed_action>;

/// Records when another stage computes. A backward is recorded as I and W, also where the plan has B.
class recorded_stage final : public program::stage_program {
 public:
  /// `steps` [num_steps], which the stages of a device share, is written by the device's thread, and must
  /// outlive the stage.
  recorded_stage(std::unique_ptr<program::stage_program> recorded, int stage,
                 std::vector<recorded_step>& steps);

  std::vector<tensor> forward(const program::microbatch& which, std::vector<tensor> inputs,
                              tensor targets) override;
  std::vector<tensor> backward_input(const program::microbatch& which,
                                     std::vector<tensor> output_gradients) override;
  void backward_weight(const program::microbatch& which) override;
  void apply(std::uint64_t step) override;
  void discard() override { recorded_->discard(); }
  program::step_metrics take_metrics() override { return recorded_->take_metrics(); }
  std::vector<named_tensor> state() override { return recorded_->state(); }
  std::vector<tensor_contents> contents() override { return recorded_->contents(); }
  std::vector<named_tensor> parameters() override { return recorded_->parameters(); }
  void load_state(const std::vector<named_tensor>& saved) override { recorded_->load_state(saved); }

 private:
  class timer;

  std::unique_ptr<program::stage_program> recorded_;
  int stage_;
  std::vector<recorded_step>& steps_;
};

}  // namespace troupe::bench
