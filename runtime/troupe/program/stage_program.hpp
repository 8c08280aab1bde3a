#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "troupe/tensor/tensor.hpp"

namespace troupe::program {

/// Adds up over the replicas of a stage within a forward or backward pass, which all replicas run together
/// (plan::synchronized_stages).
class replica_sums {
 public:
  virtual ~replica_sums() = default;
  /// Replaces the elements of `values`, f32 of any shape, by their sums over all replicas, which are the same
  /// bits in each. Waits for the others: in a pass all replicas call it equally often, with equally many
  /// elements. Throws std::logic_error if they do not, and action_interrupted, which modules pass on.
  virtual void add_up(tensor& values) = 0;
};

/// The generation ended while an action waited for others. The program is discarded.
class action_interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "the generation ended while an action waited"; }
};

/// One microbatch of one step. `step` counts from 0; `index` lies in [0, count).
struct microbatch {
  std::uint64_t step = 0;
  int index = 0;
  int count = 1;
  bool training = true;
  /// How many optimizer steps its weights are older than `step` implies: 0, or with an asynchronous schedule
  /// 1, except in the first step after a flush.
  int delay = 0;
  /// `index` and `count` are those of one replica of several, which all have equally many microbatches.
  int replica = 0;
  int num_replicas = 1;
  /// Of a forward, input gradient or backward of a synchronized stage, while it runs; else null.
  replica_sums* sums = nullptr;
  /// Of a training forward of the stage that computes the loss: the targets, [B, ...], of all microbatches
  /// over which its optimizer step averages. These are those of all replicas, or of this one if replicas
  /// average their weights. Undefined: as many targets count in each microbatch as in this one.
  tensor batch_targets = {};
  /// Whether weight gradients of a step come from the last microbatch to the first (gradient_order.hpp).
  bool gradients_descend = false;
  /// Among those of its step, in the order in which their weight gradients are added up.
  int gradient_index() const { return gradients_descend ? count - 1 - index : index; }
  /// Among those of all replicas, replica by replica: what random numbers depend on.
  int global_index() const { return replica * count + index; }
  int global_count() const { return num_replicas * count; }
};

/// Metrics of the last stage. Sums, so that they add up over microbatches.
struct step_metrics {
  double loss_sum = 0;  ///< sum of the samples' losses
  std::int64_t num_samples = 0;
  std::int64_t num_correct = 0;

  step_metrics& operator+=(const step_metrics& other);
  double mean_loss() const;
  double accuracy() const;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(loss_sum, num_samples, num_correct);
  }
  bool operator==(const step_metrics&) const = default;
};

/// What one stage computes. The runtime calls it; api/ implements it with modules, a user with anything.
///
/// Used by one thread at a time. An exception from any call fails the step, not the process. The calls of an
/// optimizer step, in order:
///
/// 1. For each microbatch forward, then (training only) backward_input before backward_weight. Forwards of
///    later microbatches may come between, also of the next step if their weights are older
///    (microbatch::delay).
/// 2. The plan's reductions that the stage takes part in, in order: partial_for_reduction, then reduce.
/// 3. With several replicas, replica_gradients and take_summed_gradients of each bucket of gradients. They
///    come after those reductions that a plan has before G, and before the others.
/// 4. apply.
/// 5. In a plan whose replicas average their weights (plan::averages_weights), the calls of 3 with buckets of
///    the weights, instead of 3.
///
/// Weight gradients of a step accumulate in ascending microbatch order, or in all steps in descending order
/// (microbatch::gradients_descend). Between two flushes several such steps may follow each other. State,
/// parameters and weights are asked for at a flush, and discard is followed by load_state.
class stage_program {
 public:
  virtual ~stage_program() = default;

  /// `inputs`: one tensor for each input port (stage_graph), or the samples alone if the stage takes these.
  /// Returns one for each output port. On the stage that computes the loss `targets` is defined, the loss is
  /// recorded for `take_metrics`, and nothing is returned; if it is not defined, which is no training, this
  /// stage returns its one output. Inputs and outputs may be shared with other stages: they must not be
  /// changed.
  virtual std::vector<tensor> forward(const microbatch& which, std::vector<tensor> inputs,
                                      tensor targets) = 0;

  /// The gradients with respect to the inputs, one for each input port, from those of the outputs, one for
  /// each output port (none on the stage that computes the loss, which starts from it). A stage that takes
  /// the samples returns none. A gradient is undefined if nothing that it belongs to is learned. Keeps what
  /// backward_weight needs.
  virtual std::vector<tensor> backward_input(const microbatch& which,
                                             std::vector<tensor> output_gradients) = 0;

  /// Adds this microbatch's weight gradients and releases everything saved for it.
  virtual void backward_weight(const microbatch& which) = 0;

  using inputs_callback = std::function<void(std::vector<tensor> input_gradients)>;
  using bucket_callback = std::function<void(int bucket)>;
  /// The last backward_weight of a step, if the stage's G comes next: calls `on_bucket` for each bucket of
  /// the gradients that is complete, once, so that it travels while the others are computed. Those that it is
  /// not called for are complete at the end. The default calls backward_weight.
  virtual void backward_last_weight(const microbatch& which, const bucket_callback& on_bucket);
  /// The same for a B: backward_input, whose result goes to `on_inputs` as soon as it is there, and
  /// backward_last_weight, one after the other or both together.
  virtual void backward_last(const microbatch& which, std::vector<tensor> output_gradients,
                             const inputs_callback& on_inputs, const bucket_callback& on_bucket);

  /// What a reduction of the plan combines of this stage: its partial gradients of tied weights, or the norms
  /// of its gradients. `reduce` gets those of all stages. The elements must not change afterwards. The
  /// default throws std::logic_error, for programs without reductions.
  virtual tensor partial_for_reduction(int reduction);

  /// Combines the partials of all participating stages, in ascending stage order, this one's included. All
  /// stages get the same partials in the same order, so all compute the same bits.
  virtual void reduce(int reduction, const std::vector<tensor>& partials);

  /// In how many buckets the gradients of optimizer step `step` go to the other replicas and come back, the
  /// same in all replicas. 0: nothing is exchanged in this step.
  virtual int num_gradient_buckets(std::uint64_t step);
  /// One of these, for a bucket of the gradients of this replica's microbatches:
  /// - A complete bucket: f32, bf16 or f16 [n] in CPU memory, the same dtype and n > 0 in all replicas. Then
  ///   take_summed_gradients gets the sum in that dtype, which is rounded once. The elements must not change
  ///   until then.
  /// - A message: i32 [n] of any n > 0, in new memory each time. Then take_summed_gradients gets those of all
  ///   replicas, in order.
  /// - Undefined: the bucket depends on sums that are not there yet. It is asked for again after each
  ///   take_summed_gradients.
  ///
  /// The default throws std::logic_error, for programs that run without replicas.
  virtual tensor replica_gradients(int bucket);
  /// Memory of any value that the processes of other replicas read in place if they are on this host.
  using memory_source = std::function<tensor(shape extents, dtype type)>;
  /// Called between steps, in each generation in which other processes have replicas of the stage: what
  /// replica_gradients returns, but for messages, costs them no copy if it is in this memory. The default
  /// does nothing.
  virtual void share_gradients(const memory_source& /*shared*/) {}
  /// `parts`: together, one after the other, the n elements of the bucket, which must not be written, nor
  /// used after the return: they may be in memory of another process. May step the weights that they belong
  /// to, before apply. Buckets come in any order, each once a step, after the last backward_weight; with
  /// defer_update also within forwards of the next step.
  virtual void take_summed_gradients(int bucket, const std::vector<tensor>& parts);

  /// Called in a G that apply follows, with buckets still to come: whether forwards of the next step may
  /// begin before they are taken and apply is called. If so, a forward waits for the weights that it reads:
  /// it calls `progress`, within which take_summed_gradients and apply are called, from time to time, and
  /// with `waits` until what it reads is there. `progress` then waits for something to come; it throws
  /// action_interrupted, which the forward passes on. Apply comes before the next backward, and before state,
  /// parameters and weights are asked for. The default says no.
  using progress_callback = std::function<void(bool waits)>;
  virtual bool defer_update(const progress_callback& /*progress*/) { return false; }

  /// Called before apply: names this step's first loss or gradient that is infinite or NaN ("the gradient of
  /// 3.weight"), see non_finite_policy. Empty if there is none, or if the program does not check.
  virtual std::string non_finite() { return {}; }

  /// The optimizer's step number `step` (from 0) with the accumulated gradients, which are zero afterwards.
  virtual void apply(std::uint64_t step) = 0;

  /// Forgets saved activations, gradients and metrics of a step that was interrupted.
  virtual void discard() = 0;

  /// The metrics of all forwards since the last call.
  virtual step_metrics take_metrics() = 0;

  /// Live handles to all that a snapshot must hold (parameters and optimizer state), by unique name.
  /// Parameters come first, in name order; names do not depend on how the model was cut. What several stages
  /// hold alike (a tied weight) has one name and is in the state of each.
  virtual std::vector<named_tensor> state() = 0;
  /// What of `state` the optimizer keeps, which job_options::reset_optimizer lets begin anew.
  virtual std::vector<named_tensor> optimizer_state() { return {}; }
  /// Live handles to the parameters alone, in name order. Each parameter of the model is one stage's.
  virtual std::vector<named_tensor> parameters() = 0;
  /// The same with what else belongs to a trained model, such as running means.
  virtual std::vector<named_tensor> weights() { return parameters(); }
  /// Copies `saved` into the state. Throws std::runtime_error naming what is missing, unknown or of another
  /// shape.
  virtual void load_state(const std::vector<named_tensor>& saved) = 0;
};

/// Makes stage `stage` of the model with its initial weights.
using program_factory = std::function<std::unique_ptr<stage_program>(int stage)>;

}  // namespace troupe::program
