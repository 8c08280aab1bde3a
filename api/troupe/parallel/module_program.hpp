#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "troupe/autograd/backward_pass.hpp"
#include "troupe/nn/cross_entropy.hpp"
#include "troupe/nn/loss.hpp"
#include "troupe/nn/sequential.hpp"
#include "troupe/optim/optimizer.hpp"
#include "troupe/parallel/cut.hpp"
#include "troupe/parallel/step_gradients.hpp"
#include "troupe/program/stage_program.hpp"

namespace troupe {

struct module_program_options {
  nn::Loss loss = nn::CrossEntropy();
  optim::Optimizer optimizer = nullptr;  ///< needed
  std::uint64_t seed = 0;
  numerics how = {};
  /// Parameters and buffers of the whole model to begin with, by name; none: initial values from the seed.
  std::shared_ptr<const std::vector<named_tensor>> begin_with = nullptr;
};

/// Some layers of a Sequential as a stage, with the loss after the last layer of the model.
///
/// The gradient of each sample is scaled by 1 / global batch, which is microbatch size times number of
/// microbatches; metrics are sums. How the model was cut, and in which order the microbatches' forwards and
/// backwards come, does not change a bit as long as weight gradients come in ascending microbatch order;
/// anything else throws std::logic_error. Evaluation saves nothing. Tied weights, a loss scale and clipping
/// need the reductions of stage_reductions.hpp in the plan.
class module_program : public stage_program {
 public:
  /// Stage `stage` of the cut. Clones the layers, so that programs share nothing with `model` or each other,
  /// and materializes them.
  module_program(const nn::Sequential& model, const std::vector<stage_range>& cut, int stage,
                 const module_program_options& options);

  tensor forward(const microbatch& which, tensor input, tensor targets) override;
  tensor backward_input(const microbatch& which, tensor output_gradient) override;
  void backward_weight(const microbatch& which) override;
  tensor share_of(int reduction) override { return gradients_->share_of(reduction); }
  void reduce(int reduction, const std::vector<tensor>& shares) override {
    gradients_->reduce(reduction, shares);
  }
  std::string non_finite() override;
  void apply(std::uint64_t step) override;
  void discard() override;
  step_metrics take_metrics() override;
  std::vector<named_tensor> state() override;
  std::vector<named_tensor> parameters() override;
  std::vector<named_tensor> weights() override;
  void load_state(const std::vector<named_tensor>& saved) override;

 private:
  struct pass {
    std::uint64_t step = 0;
    variable input;  ///< a constant in the first stage
    std::optional<backward_pass> back;
  };

  void begin(const std::vector<named_tensor>& weights);
  std::vector<placed_parameter> counted_in(const nn::Sequential& model) const;
  void check_first_pass(const variable& output, const tensor& targets);
  pass& begin_pass(const microbatch& which, tensor input);
  variable run_layers(variable value, bool training);
  variable take_loss(const microbatch& which, const variable& output, const tensor& targets);
  pass& pass_of(const microbatch& which, const char* action);

  // Constant after construction.
  bool is_first_, is_last_;
  std::vector<std::shared_ptr<nn::Module>> layers_;
  nn::Loss loss_;
  dtype precision_;
  bool looks_for_non_finite_;
  std::vector<named_parameter> parameters_;  // in name order; tied ones once
  std::set<std::string> borrowed_;           // names of those that an earlier stage lists
  std::vector<nn::named_buffer> buffers_;    // the same
  std::unique_ptr<optim::optimizer_state> optimizer_;
  std::optional<step_gradients> gradients_;
  bool is_checked_ = false;  ///< by check_first_pass
  // The current step.
  std::map<int, pass> passes_;  // by microbatch
  int last_accumulated_ = -1;
  step_metrics metrics_;
};

/// The programs of a model's stages, each with initial weights that depend on nothing but the seed and the
/// parameters' names. Throws bad_input if the model cannot be cut so or begin so. The factory may be called
/// by several threads at once and any number of times for a stage; every program has weights of its own.
program_factory make_module_programs(nn::Sequential model, int stages, module_program_options options);

}  // namespace troupe
