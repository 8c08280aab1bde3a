#pragma once
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "troupe/program/batch_source.hpp"
#include "troupe/program/stage_program.hpp"

namespace troupe::testing {

/// The state that all fake stages of a test share.
struct fake_model {
  int num_stages = 1;
  int num_slices = 1;  ///< a power of two
  /// Every call, by example:
  ///
  /// | entry | call |
  /// |---|---|
  /// | "F1.0" | forward, stage 1, microbatch 0 |
  /// | "E1.0" | forward that is no training |
  /// | "I1.0", "W1.0" | backward_input, backward_weight |
  /// | "S1.0", "R1.0" | partial for reduction 0, reduction 0 |
  /// | "G1.0" | gradients for the replicas |
  /// | "C1.0" | gradients that the slices have in common |
  /// | "A1@3" | apply step 3 |
  /// | "D1", "L1" | discard, load_state |
  /// | "N1" | made anew |
  /// | "J1.0" | has added up with the other replicas within a forward |
  std::vector<std::string> calls;
  /// Called with each entry before the call is executed; may throw.
  std::function<void(const std::string&)> before = [](const std::string&) {};
  /// Whether updates may be deferred; a forward then waits for the whole one.
  bool defers_updates = false;
  /// The non-finite value that a stage reports in a step; empty: none.
  std::function<std::string(int stage, std::uint64_t step)> non_finite = [](int, std::uint64_t) {
    return "";
  };
};

/// One weight per stage: y = w * x, squared loss, gradient descent with momentum, simple enough to compute by
/// hand. Throws std::logic_error if it is not called as stage_program requires, or if a step is applied twice
/// or skipped.
///
/// Several slices have the weight whole, and each has one element of a tensor beside it, which counts steps
/// times its number and is checked where the step is: another slice's state is found out.
class fake_program : public program::stage_program {
 public:
  fake_program(std::shared_ptr<fake_model> model, const layout::cell& computed)
      : model_(std::move(model)), stage_(computed.stage), slice_(computed.slice) {
    note("N");
    weight().values<float>()[0] = 1 + 0.125f * static_cast<float>(stage_);
  }

  void share_gradients(const memory_source& shared) override {
    if (shared) shared({1}, dtype::f32);
  }

  std::vector<tensor> forward(const program::microbatch& which, std::vector<tensor> inputs,
                              tensor targets) override {
    note(which.training ? "F" : "E", which.index);
    expect(inputs.size() == 1, "one input");
    const auto& input = inputs[0];
    expect(input.defined() &&
               (which.training ? targets.defined() == is_last() : is_last() || !targets.defined()),
           "inputs, and targets on the last stage only");
    while (progress_) {
      auto progress = progress_;
      progress(true);
    }
    if (which.training) expect_step(which.step);
    if (which.sums) {
      auto values = tensor::full({1}, 1);
      which.sums->all_reduce(values);
      note("J", which.index);
    }
    auto output = scaled(input, w());
    if (which.training)
      expect(saved_.emplace(which.index, activation{input, {}}).second, "each microbatch once");
    if (!is_last() || !targets.defined()) return {output};
    auto gradient = loss_of(output, targets);
    if (which.training) saved_[which.index].gradient = gradient;
    return {};
  }

  std::vector<tensor> backward_input(const program::microbatch& which,
                                     std::vector<tensor> output_gradients) override {
    note("I", which.index);
    expect_step(which.step);
    expect(saved_.contains(which.index), "forward before backward");
    expect(output_gradients.size() == (is_last() ? 0 : 1), "a gradient on all stages but the last");
    auto& kept = saved_[which.index];
    if (!is_last()) kept.gradient = output_gradients[0];
    if (stage_ == 0) return {};
    return {scaled(kept.gradient, w())};
  }

  void backward_weight(const program::microbatch& which) override {
    note("W", which.index);
    expect(which.index == next_weight_, "weight gradients in the order of microbatches");
    ++next_weight_;
    auto kept = std::move(saved_.at(which.index));
    saved_.erase(which.index);
    auto input = kept.input.values<float>();
    auto gradient = kept.gradient.values<float>();
    for (std::size_t i = 0; i < input.size(); ++i) sum_ += input[i] * gradient[i];
  }

  tensor partial_for_reduction(int reduction) override {
    note("S", reduction);
    expect(saved_.empty(), "all weight gradients before a reduction");
    return tensor::full({1}, sum_);
  }

  void reduce(int reduction, const std::vector<tensor>& partials) override {
    note("R", reduction);
    sum_ = 0;
    for (const auto& partial : partials)
      sum_ = 0.5f * sum_ + partial.values<float>()[0];  // depends on the order of the partials
  }

  tensor bucket(layout::mesh_axis axis, int number) override {
    expect(saved_.empty(), "all weight gradients before a sum over lanes");
    bool over_replicas = axis == layout::mesh_axis::dp;
    note(over_replicas ? "G" : "C", number);
    return tensor::full({1}, over_replicas ? sum_ : sum_ / static_cast<float>(model_->num_slices));
  }

  void take_sums(layout::mesh_axis, int, const std::vector<tensor>& parts) override {
    for (const auto& part : parts)
      for (auto value : part.values<float>()) sum_ = value;
  }

  bool defer_update(const progress_callback& progress) override {
    if (model_->defers_updates) progress_ = progress;
    return model_->defers_updates;
  }

  std::string non_finite() override {
    return model_->non_finite(stage_, static_cast<std::uint64_t>(state_[2].values<float>()[0]));
  }

  void apply(std::uint64_t step) override {
    note_text("A" + std::to_string(stage_) + "@" + std::to_string(step));
    progress_ = nullptr;
    expect_step(step);
    expect(saved_.empty(), "nothing saved when a step is applied");
    auto& moment = state_[1].values<float>()[0];
    moment = 0.5f * moment + sum_;
    state_[0].values<float>()[0] -= 0.01f * moment;
    state_[2].values<float>()[0] += 1;
    state_[3].values<float>()[0] += static_cast<float>(slice_ + 1);
    sum_ = 0;
    next_weight_ = 0;
  }

  void discard() override {
    note("D");
    progress_ = nullptr;
    saved_.clear();
    sum_ = 0;
    next_weight_ = 0;
    metrics_ = {};
  }

  program::step_metrics take_metrics() override { return std::exchange(metrics_, {}); }

  std::vector<named_tensor> state() override {
    std::vector<named_tensor> all = {
        {name("weight"), state_[0]}, {name("moment"), state_[1]}, {name("steps"), state_[2]}};
    if (model_->num_slices > 1) all.push_back({name("sliced"), state_[3]});
    return all;
  }
  std::vector<tensor_contents> contents() override {
    auto all = whole_contents(state());
    if (model_->num_slices == 1) return all;
    all.back().whole = {model_->num_slices};
    all.back().boxes = {{{slice_}, {1}}};
    return all;
  }
  std::vector<named_tensor> parameters() override { return {{name("weight"), state_[0]}}; }
  void load_state(const std::vector<named_tensor>& saved) override {
    note("L");
    auto mine = state();
    if (saved.size() != mine.size()) throw std::runtime_error("state of another model");
    for (std::size_t i = 0; i < mine.size(); ++i) {
      if (saved[i].name != mine[i].name) throw std::runtime_error("unknown name " + saved[i].name);
      mine[i].value.copy_from(saved[i].value);
    }
  }

 private:
  struct activation {
    tensor input, gradient;
  };

  static tensor scaled(const tensor& values, float factor) {
    auto result = values.clone();
    for (auto& value : result.values<float>()) value *= factor;
    return result;
  }
  tensor loss_of(const tensor& output, const tensor& targets) {
    auto gradient = output.clone();
    auto wanted = targets.values<float>();
    auto error = gradient.values<float>();
    for (std::size_t i = 0; i < error.size(); ++i) {
      error[i] -= wanted[i];
      metrics_.loss_sum += static_cast<double>(error[i]) * static_cast<double>(error[i]);
      metrics_.num_correct += error[i] > 0;
      ++metrics_.num_samples;
    }
    return gradient;
  }

  bool is_last() const { return stage_ == model_->num_stages - 1; }
  tensor& weight() { return state_[0]; }
  float w() { return weight().values<float>()[0]; }
  std::string name(const std::string& what) const { return std::to_string(stage_) + "." + what; }
  void note(const std::string& what) { note_text(what + std::to_string(stage_)); }
  void note(const std::string& what, int index) {
    note_text(what + std::to_string(stage_) + "." + std::to_string(index));
  }
  void note_text(const std::string& text) {
    model_->before(text);
    model_->calls.push_back(text);
  }
  void expect_step(std::uint64_t step) {
    auto applied = static_cast<std::uint64_t>(state_[2].values<float>()[0]);
    expect(applied == step, "step " + std::to_string(applied) + ", got step " + std::to_string(step));
    auto counted = model_->num_slices == 1 ||
                   state_[3].values<float>()[0] == static_cast<float>(step) * static_cast<float>(slice_ + 1);
    expect(counted, "the state of slice " + std::to_string(slice_));
  }
  static void expect(bool condition, const std::string& what) {
    if (!condition) throw std::logic_error("[fake_program] expected " + what);
  }

  std::shared_ptr<fake_model> model_;
  int stage_;
  int slice_;
  std::vector<tensor> state_{tensor::zeros({1}), tensor::zeros({1}), tensor::zeros({1}), tensor::zeros({1})};
  std::map<int, activation> saved_;
  float sum_ = 0;
  int next_weight_ = 0;
  program::step_metrics metrics_;
  progress_callback progress_;
};

inline program::program_factory fake_programs(const std::shared_ptr<fake_model>& model) {
  return [model](const layout::cell& computed) { return std::make_unique<fake_program>(model, computed); };
}

/// Samples that depend on seed and step; two rows per microbatch by default.
class fake_source : public batch_source {
 public:
  explicit fake_source(int seed, std::int64_t batch = 4, std::uint64_t steps_per_epoch = 100)
      : seed_(seed), batch_(batch), steps_(steps_per_epoch) {}
  std::uint64_t num_steps_per_epoch() const override { return steps_; }
  batch at(std::uint64_t step) override {
    batch made{tensor::empty({batch_, 1}), tensor::empty({batch_, 1})};
    for (std::int64_t row = 0; row < batch_; ++row) {
      auto mixed = (static_cast<std::uint64_t>(seed_) * 7919 + step * 104729 +
                    static_cast<std::uint64_t>(row) * 1299709) %
                   97;
      made.inputs.values<float>()[static_cast<std::size_t>(row)] = static_cast<float>(mixed) / 97;
      made.targets.values<float>()[static_cast<std::size_t>(row)] = 0.25f + static_cast<float>(mixed) / 194;
    }
    return made;
  }

 private:
  int seed_;
  std::int64_t batch_;
  std::uint64_t steps_;
};

}  // namespace troupe::testing
