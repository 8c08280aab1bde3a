#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "troupe/autograd/backward_pass.hpp"
#include "troupe/nn/cross_entropy.hpp"
#include "troupe/nn/loss.hpp"
#include "troupe/optim/optimizer.hpp"
#include "troupe/pipeline/detail/model_cut.hpp"
#include "troupe/pipeline/detail/parameters/deferred_update.hpp"
#include "troupe/pipeline/detail/parameters/parameter_shards.hpp"
#include "troupe/pipeline/detail/parameters/weight_average.hpp"
#include "troupe/pipeline/detail/step_gradients.hpp"
#include "troupe/pipeline/detail/target_count.hpp"
#include "troupe/pipeline/detail/weight_versions.hpp"
#include "troupe/program/stage_program.hpp"
#include "troupe/tensor/async/deferred_reads.hpp"

namespace troupe::detail {

struct module_program_options {
  nn::Loss loss = nn::CrossEntropy();
  optim::Optimizer optimizer = nullptr;  ///< required
  std::uint64_t seed = 0;
  numeric_options numerics = {};
  /// Initial parameters and buffers of the whole model, by name; null: initial values from the seed.
  std::shared_ptr<const std::vector<named_tensor>> initial_weights = nullptr;
  /// As in the plan. More than 1: the program keeps a second version of its weights, for the microbatches
  /// with a delay.
  int flush_every = 1;
  /// Where the programs of a cell compute; null: on the CPU.
  std::function<device(const layout::cell&)> place = nullptr;
  /// More than 1: the replicas own shards of each stage's parameters (parameter_shards), one each.
  int num_shards = 1;
};

/// The program of one pipeline stage: some nodes of a graph, and in the last stage the loss. Its ports are
/// those of cut_model.
///
/// The gradient is scaled by 1 / the number of targets that the loss counts in the global batch. These are
/// the targets in the microbatches of all replicas, or of its own where replicas average their weights.
/// Metrics are sums over them. In a step in which none counts no parameter has a gradient. A step that is
/// skipped leaves buffers, too, as they were before it (not with flush_every of more than 1, where forwards
/// of the next step come before).
///
/// With shards each replica has all weights for its passes, and steps those of its shard alone, with the same
/// bits. Those of others come from their owners between two steps (a U of the plan). Its state is that of its
/// shard.
///
/// The bits do not depend on the partition into stages or on the order of the microbatches' forward and
/// backward passes. Weight gradients must be computed in ascending microbatch order, or as
/// microbatch::gradients_descend says; any other order throws std::logic_error. Evaluation saves no
/// activations. Tied weights, a loss scale and clipping need the reductions of stage_reductions.hpp in the
/// plan.
///
/// While an update is deferred, a forward waits for each weight when an operation comes to it: modules that
/// read weights by other means than the operations of functions.hpp call parameter::wait_ready before. In a
/// stage whose updates may be deferred the first forward throws std::logic_error for one that does not.
///
/// Between two flushes the parameters' tensors change places (weight_versions): an optimizer must not keep
/// their handles from one step to the next.
class module_program : public program::stage_program {
 public:
  /// Creates the program of stage `stage` of the partition. Clones and materializes the layers, so that
  /// programs share nothing with `model` or each other. It computes on `place`, to whose memory it takes what
  /// it is given. Throws bad_input if that does not exist. `shard`: of options.num_shards, the one that it
  /// owns.
  module_program(const nn::Graph& model, const std::vector<stage_range>& partition, int stage,
                 const module_program_options& options, device place = {}, int shard = 0);

  device place() const override { return place_; }
  std::vector<tensor> forward(const program::microbatch& mb, std::vector<tensor> inputs,
                              tensor targets) override;
  std::vector<tensor> backward_input(const program::microbatch& mb,
                                     std::vector<tensor> output_gradients) override;
  void backward_weight(const program::microbatch& mb) override { accumulate(mb, {}); }
  void backward_last_weight(const program::microbatch& mb, const bucket_callback& on_bucket) override {
    accumulate(mb, on_bucket);
  }
  void backward_last(const program::microbatch& mb, std::vector<tensor> output_gradients,
                     const inputs_callback& on_inputs, const bucket_callback& on_bucket) override;
  tensor partial_for_reduction(int reduction) override {
    return gradients_->partial_for_reduction(reduction);
  }
  void reduce(int reduction, const std::vector<tensor>& partials) override {
    gradients_->reduce(reduction, partials);
  }
  int num_buckets(layout::mesh_axis axis, std::uint64_t step) override;
  tensor bucket(layout::mesh_axis axis, int number) override;
  std::optional<int> owner_of(layout::mesh_axis axis, int number) override;
  std::vector<weight_bucket> weight_buckets() override;
  tensor weights_in(int bucket) override { return shards_->weights_in(bucket); }
  void take_weights(int bucket, const tensor& weights) override { shards_->take_weights(bucket, weights); }
  bool keeps_weights() override { return !shards_ || !shards_->frees_values(); }
  void attach_weights() override { shards_->attach_values(); }
  void release_weights() override { shards_->release_values(); }
  bool defer_gather(const std::vector<int>& missing, const progress_callback& progress) override;
  void end_gather() override { deferred_->end(); }
  void share_gradients(const memory_source& shared) override;
  void note_read(layout::mesh_axis axis, int number) override;
  void take_sums(layout::mesh_axis axis, int number, const std::vector<tensor>& parts) override;
  bool defer_update(const progress_callback& progress) override;
  std::string non_finite() override;
  void apply(std::uint64_t step) override;
  void discard() override;
  program::step_metrics take_metrics() override;
  std::vector<named_tensor> state() override;
  std::vector<tensor_contents> contents() override;
  std::vector<named_tensor> optimizer_state() override { return optimizer_->state(); }
  std::vector<named_tensor> parameters() override;
  std::vector<named_tensor> weights() override;
  void load_state(const std::vector<named_tensor>& saved) override;

 private:
  struct pass {
    std::vector<variable> inputs;          ///< constants where the stage takes samples
    std::vector<tensor> output_gradients;  ///< set while backward_input runs
    std::optional<backward_pass> back;
  };

  std::vector<named_parameter> stepped() const { return shards_ ? shards_->owned() : parameters_; }
  void begin(const std::vector<named_tensor>& weights);
  std::vector<optim::detail::indexed_parameter> counted_in(const nn::Graph& model) const;
  void check_first_pass(const program::microbatch& mb, const std::vector<variable>& outputs,
                        const tensor& targets);
  pass& begin_pass(const program::microbatch& mb, std::vector<tensor> inputs);
  std::vector<variable> run_layers(const program::microbatch& mb, std::vector<variable> inputs);
  backward_options options_of(const program::microbatch& mb);
  void run_backward(pass& recorded, std::vector<tensor> output_gradients,
                    void (backward_pass::*run)(const tensor&));
  void accumulate(const program::microbatch& mb, const bucket_callback& on_bucket);
  bool steps_by_parts() const;
  step_gradients::part_stepper part_stepper();
  void require_in_order(const program::microbatch& mb) const;
  void end_accumulation(const program::microbatch& mb);
  void use_version(const program::microbatch& mb, std::optional<weight_versions::scope>& scope);
  variable take_loss(const program::microbatch& mb, const variable& output, const tensor& targets);
  bool is_loss_finite();
  void keep_buffers();
  void restore_buffers();
  void evaluate_loss(const program::microbatch& mb, const variable& output, const tensor& targets);
  loss_result compute_loss(const program::microbatch& mb, const variable& output, const tensor& targets,
                           double scale);
  void add_metrics(const loss_result& result, const tensor& targets);
  void read_deferred();
  pass& pass_of(const program::microbatch& mb, const char* action);

  // Constant after construction.
  device place_;
  bool is_last_;
  stage_values values_;
  std::optional<nn::detail::graph_segment> layers_;
  nn::Loss loss_;
  dtype precision_;
  bool looks_for_non_finite_;
  std::vector<named_parameter> parameters_;  // in name order; tied ones once
  std::set<std::string> borrowed_;           // names of tied parameters that an earlier stage lists
  std::vector<nn::named_buffer> buffers_;    // the same
  std::optional<parameter_shards> shards_;   ///< if replicas own pieces of the parameters
  std::unique_ptr<optim::optimizer_state> optimizer_;
  std::optional<step_gradients> gradients_;
  std::optional<deferred_update> deferred_;
  std::uint64_t flush_every_;
  std::optional<weight_versions> versions_;  ///< if it flushes less often than it steps
  std::optional<weight_average> average_;    ///< with numeric_options::average_every
  bool is_checked_ = false;                  ///< check_first_pass was called
  // The current step.
  std::map<std::pair<std::uint64_t, int>, pass> passes_;  // [step, microbatch]
  int last_accumulated_ = -1;                             ///< microbatch::gradient_index
  std::uint64_t accumulated_step_ = 0;                    ///< the step of last_accumulated_
  int num_replicas_ = 1;                                  ///< replicas in that step
  bucket_callback on_bucket_;                             ///< while the last weight gradients are computed
  bool has_finite_loss_ = true;                           ///< of the step whose update is deferred
  bool has_taken_finite_loss_ = true;  ///< in the metrics of this step that were taken before its apply
  /// What the host waits for at the end of the step only: whether indices and labels are in range, and the
  /// losses, in training with their targets.
  deferred_reads reads_;
  std::vector<std::pair<std::shared_ptr<const loss_totals>, tensor>> deferred_losses_;
  target_count counted_targets_;
  program::step_metrics metrics_;
  /// [buffers_] as the last step that was made left them; empty: none are restored.
  std::vector<tensor> kept_buffers_;
};

/// Returns a factory of the stages' programs: so many of about equal cost, or those of a partition. Initial
/// weights depend only on the seed and the parameters' names. Throws bad_input if the model cannot be
/// partitioned into `stages` or the initial weights do not fit. The factory is thread-safe and may be called
/// any number of times per stage; every program has its own weights.
program::program_factory make_module_programs(nn::Graph model, int stages, module_program_options options);
program::program_factory make_module_programs(nn::Graph model, std::vector<stage_range> partition,
                                              module_program_options options);

}  // namespace troupe::detail
