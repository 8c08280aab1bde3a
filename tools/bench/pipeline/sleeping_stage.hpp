#pragma once
#include <chrono>
#include <cstdint>
#include <vector>

#include "troupe/program/stage_program.hpp"

namespace troupe::bench {

/// What a stage did in one step, written by its device and read when the job is over. Times of the steady
/// clock, in ns.
struct stage_step {
  std::int64_t first_begin_ns = 0;
  std::int64_t last_end_ns = 0;
  std::int64_t asleep_ns = 0;  ///< in all its actions
  int peak_saved = 0;          ///< microbatches between forward and weight gradient, at most
};

struct sleeping_stage_options {
  int stage = 0;
  int num_stages = 1;
  std::chrono::nanoseconds forward{0};
  std::chrono::nanoseconds backward{0};
};

/// A stage whose computing is a sleep, so that more devices than cores do not take each other's time. The
/// whole backward counts as the input gradient, as the formulas for the bubble have it.
class sleeping_stage final : public stage_program {
 public:
  /// `record` [num_steps] must outlive it.
  sleeping_stage(const sleeping_stage_options& options, std::vector<stage_step>& record);

  tensor forward(const microbatch& which, tensor input, tensor targets) override;
  tensor backward_input(const microbatch& which, tensor output_gradient) override;
  void backward_weight(const microbatch& which) override;
  void apply(std::uint64_t) override {}
  void discard() override { saved_ = 0; }
  step_metrics take_metrics() override { return {}; }
  std::vector<named_tensor> state() override { return state_; }
  std::vector<named_tensor> parameters() override { return state_; }
  void load_state(const std::vector<named_tensor>&) override {}

 private:
  void work(std::uint64_t step, std::chrono::nanoseconds nominal);

  sleeping_stage_options options_;
  std::vector<stage_step>& record_;
  tensor handed_on_;
  std::vector<named_tensor> state_;
  int saved_ = 0;
};

}  // namespace troupe::bench
