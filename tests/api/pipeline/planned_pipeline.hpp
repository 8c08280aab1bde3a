#pragma once
#include <algorithm>
#include <deque>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "api/pipeline/tested_programs.hpp"
#include "troupe/execution/plan_interpreter.hpp"
#include "troupe/optim/adam.hpp"
#include "troupe/pipeline/detail/module_program.hpp"
#include "troupe/pipeline/detail/stage_reductions.hpp"
#include "troupe/schedule/checks/check_plan.hpp"

namespace troupe::testing {

struct planned_options {
  std::vector<stage_range> partition;
  schedule_kind kind = schedule_kind::gpipe;
  int num_microbatches = 1;
  int num_devices = 1;
  std::vector<int> device_of_stage = {};
  numeric_options numerics = {};
  int flush_every = 1;
};

/// A graph cut into stages, whose plan is run by an interpreter for each device, in one thread.
class planned_pipeline {
 public:
  planned_pipeline(const nn::Graph& model, const planned_options& options)
      : training_(
            make_plan({.kind = options.kind,
                       .num_stages = static_cast<int>(options.partition.size()),
                       .num_microbatches = options.num_microbatches,
                       .num_devices = options.num_devices,
                       .reductions = detail::reductions_of(model, options.partition, options.numerics).all,
                       .edges = detail::cut_model(model.wiring(), options.partition).edges,
                       .device_of_stage = options.device_of_stage,
                       .flush_every = options.flush_every})) {
    if (auto problems = schedule::check_plan(training_); !problems.empty())
      throw std::logic_error(problems.front());
    auto make = programs_of(model, options.partition,
                            {.optimizer = optim::Adam({.lr = 0.01}),
                             .seed = 42,
                             .numerics = options.numerics,
                             .flush_every = options.flush_every});
    for (int stage = 0; stage < training_.num_stages; ++stage) stages_.push_back(make({.stage = stage}));
  }

  /// Once through the plan, with the samples of all its optimizer steps.
  void train(std::uint64_t step, const batch& samples) {
    run(training_, execution::pass_kind::train, step, samples);
  }
  /// In evaluation mode.
  std::vector<tensor> predict(const batch& samples) {
    return run(forward_projection(training_, training_.num_microbatches), execution::pass_kind::predict, 0,
               samples);
  }
  /// Parameters and buffers, optimizer state included if wanted, by name.
  std::vector<named_tensor> weights() {
    std::vector<named_tensor> all;
    for (auto& stage : stages_)
      for (auto& each : stage->weights()) all.push_back({each.name, each.value.clone()});
    std::ranges::sort(all, {}, &named_tensor::name);
    return all;
  }
  program::step_metrics take_metrics() { return stages_.back()->take_metrics(); }
  const plan& training() const { return training_; }

 private:
  class device : private execution::action_host {
   public:
    device(planned_pipeline& whole, const plan& running, int index, execution::pass_kind pass,
           const batch& samples)
        : whole_(whole),
          samples_(samples),
          interpreter(
              {.running = running, .device = index, .pass = pass},
              [&whole](int stage) -> program::stage_program& {
                return *whole.stages_[static_cast<std::size_t>(stage)];
              },
              box, *this) {}

    execution::inbox box;
    std::vector<tensor> predictions;

   private:
    const batch* samples() override { return &samples_; }
    void send(const transport::tensor_tag& tag, tensor value) override {
      auto to = whole_.training_.device_of_stage[tag.stage];
      (*whole_.devices_)[static_cast<std::size_t>(to)].box.put(tag, value.to({}));
    }
    void on_prediction(const action&, const tensor& output) override { predictions.push_back(output); }
    void on_begin(const action&) override {}
    void on_end(const action&) override {}
    bool on_non_finite(const action& op, const std::string& what) override {
      throw std::runtime_error(to_string(op) + ": " + what);
    }

    planned_pipeline& whole_;
    const batch& samples_;

   public:
    execution::plan_interpreter interpreter;
  };

  std::vector<tensor> run(const plan& running, execution::pass_kind pass, std::uint64_t step,
                          const batch& samples) {
    std::deque<device> devices;
    devices_ = &devices;
    for (int index = 0; index < running.num_devices(); ++index)
      devices.emplace_back(*this, running, index, pass, samples).interpreter.begin_step(step);
    auto is_done = [](const device& each) { return each.interpreter.is_at_end(); };
    for (bool moved = true; moved && !std::ranges::all_of(devices, is_done);) {
      moved = false;
      for (auto& each : devices)
        while (!is_done(each) && each.interpreter.run_next()) moved = true;
    }
    if (!std::ranges::all_of(devices, is_done)) throw std::logic_error("the plan does not get on");
    std::vector<tensor> predictions;
    for (auto& each : devices) std::ranges::move(each.predictions, std::back_inserter(predictions));
    return predictions;
  }

  plan training_;
  std::vector<std::unique_ptr<program::stage_program>> stages_;
  std::deque<device>* devices_ = nullptr;  ///< set while a run is in progress
};

}  // namespace troupe::testing
