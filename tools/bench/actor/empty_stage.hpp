#pragma once
#include <cstdint>
#include <vector>

#include "troupe/program/stage_program.hpp"

namespace troupe::bench {

struct empty_stage_options {
  int stage = 0;
  int num_stages = 1;
  std::int64_t size_bytes = 4;
};

/// When a step was begun and ended on one stage; steady clock, in ns.
struct step_times {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

/// A stage that computes nothing: it hands on a tensor of a given size, forwards and backwards.
class empty_stage final : public stage_program {
 public:
  /// `record` [num_steps] must outlive it.
  empty_stage(const empty_stage_options& options, std::vector<step_times>& record);

  tensor forward(const microbatch& which, tensor input, tensor targets) override;
  tensor backward_input(const microbatch& which, tensor output_gradient) override;
  void backward_weight(const microbatch& which) override;
  void apply(std::uint64_t) override {}
  void discard() override {}
  step_metrics take_metrics() override { return {}; }
  std::vector<named_tensor> state() override { return state_; }
  std::vector<named_tensor> parameters() override { return state_; }
  void load_state(const std::vector<named_tensor>&) override {}

 private:
  empty_stage_options options_;
  std::vector<step_times>& record_;
  tensor payload_;
  std::vector<named_tensor> state_;
};

}  // namespace troupe::bench
