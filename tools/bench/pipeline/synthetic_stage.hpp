#pragma once
#include <chrono>
#include <cstdint>
#include <vector>

#include "troupe/program/stage_program.hpp"

namespace troupe::bench {

/// What a device did in one step. Times are of the steady clock, in ns.
struct device_step {
  std::int64_t first_begin_ns = 0;
  std::int64_t last_end_ns = 0;
  std::int64_t asleep_ns = 0;  ///< sum over all its actions
  int peak_saved = 0;          ///< microbatches of its stages between forward and weight gradient, at most
};

/// Written by the device's thread and read when the job is over.
struct device_record {
  std::vector<device_step> steps;  ///< [num_steps]
  int saved = 0;                   ///< microbatches of its stages between forward and weight gradient, now
};

struct synthetic_stage_options {
  int stage = 0;
  int num_stages = 1;
  std::int64_t size_bytes = 4;  ///< of the tensors that go from stage to stage
  /// How long the stage sleeps in place of computing; 0: it does nothing. It sleeps, so that more devices
  /// than cores do not take each other's time. A sleep ends late, by what the machine takes to wake a thread:
  /// each is shortened by how late the stage's last ones were on average, so that the mean is the nominal
  /// time.
  std::chrono::nanoseconds forward{0};
  std::chrono::nanoseconds input_gradient{0};
  std::chrono::nanoseconds weight_gradient{0};
  /// Of the gradients that replicas add up, in so many buckets of f32, which become complete one after the
  /// other in the last weight gradient of a step.
  std::int64_t gradient_bytes = 0;
  int num_buckets = 1;
};

/// A stage that computes nothing: it hands on a tensor of a given size, forwards and backwards.
class synthetic_stage final : public program::stage_program {
 public:
  /// `record`, which the stages of a device share, must outlive the stage.
  synthetic_stage(const synthetic_stage_options& options, device_record& record);

  std::vector<tensor> forward(const program::microbatch& which, std::vector<tensor> inputs,
                              tensor targets) override;
  std::vector<tensor> backward_input(const program::microbatch& which,
                                     std::vector<tensor> output_gradients) override;
  void backward_weight(const program::microbatch& which) override;
  void backward_last_weight(const program::microbatch& which, const bucket_callback& on_bucket) override;
  int num_buckets(layout::mesh_axis, std::uint64_t) override { return options_.num_buckets; }
  tensor bucket(layout::mesh_axis, int number) override {
    return gradients_.at(static_cast<std::size_t>(number));
  }
  void take_sums(layout::mesh_axis, int, const std::vector<tensor>&) override {}
  void apply(std::uint64_t) override {}
  void discard() override { record_.saved = 0; }
  program::step_metrics take_metrics() override { return {}; }
  std::vector<named_tensor> state() override { return state_; }
  std::vector<named_tensor> parameters() override { return state_; }
  void load_state(const std::vector<named_tensor>&) override {}

 private:
  device_step& work(std::uint64_t step, std::chrono::nanoseconds nominal);

  synthetic_stage_options options_;
  device_record& record_;
  tensor payload_;
  std::vector<tensor> gradients_;  // [num_buckets]
  std::vector<named_tensor> state_;
  std::int64_t lateness_ns_ = 0;  ///< by which sleeps are shortened
};

}  // namespace troupe::bench
