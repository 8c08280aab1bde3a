#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <vector>

#include "troupe/tensor/tensor.hpp"

namespace troupe::program {

/// Adds up over the lanes along an axis of the mesh within a pass of a stage, which they run together
/// (plan::joint).
class lane_sums {
 public:
  virtual ~lane_sums() = default;
  /// Replaces the elements of `values`, f32 of any shape, by their sums over all lanes, which are the same
  /// bits in each. Waits for the others: in a pass all lanes call it equally often, with equally many
  /// elements. Throws std::logic_error if they do not, and action_interrupted, which modules pass on.
  virtual void all_reduce(tensor& values) = 0;
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
  /// Over replicas and over slices, while a pass runs that they run together; else null.
  lane_sums* sums = nullptr;
  lane_sums* slice_sums = nullptr;
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

/// The passes of a stage: what evaluation, prediction and serving need, and training besides
/// stage_parameters. It presupposes neither an optimizer nor other replicas.
class stage_compute {
 public:
  virtual ~stage_compute() = default;

  /// Where it computes, and gives its results.
  virtual device place() const { return {}; }

  /// `inputs`: one tensor for each input port (stage_graph), or the samples alone if the stage takes these.
  /// They and the gradients of backward_input are in the memory of the CPU, or at the place of the stage that
  /// gave them, if that is in the same process. Targets are in the CPU's memory.
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
  /// The last backward_weight of a step, if the stage's G over dp comes next: calls `on_bucket` for each
  /// bucket of the gradients that is complete, once, so that it travels while the others are computed. Those
  /// that it is not called for are complete at the end. The default calls backward_weight.
  virtual void backward_last_weight(const microbatch& which, const bucket_callback& on_bucket);
  /// The same for a B: backward_input, whose result goes to `on_inputs` as soon as it is there, and
  /// backward_last_weight, one after the other or both together.
  virtual void backward_last(const microbatch& which, std::vector<tensor> output_gradients,
                             const inputs_callback& on_inputs, const bucket_callback& on_bucket);

  /// Forgets saved activations, gradients and metrics of a step that was interrupted.
  virtual void discard() = 0;

  /// The metrics of all forwards since the last call.
  virtual step_metrics take_metrics() = 0;
};

}  // namespace troupe::program
