#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "troupe/data_parallel/gradient_reducer.hpp"
#include "troupe/data_parallel/group_of_world.hpp"
#include "troupe/data_parallel/replica_buffers.hpp"
#include "troupe/nn/module.hpp"
#include "troupe/optim/optimizer.hpp"

namespace troupe {

struct data_parallel_options {
  /// Size limit of a bucket of gradients that are reduced together, in MiB; smaller for small models
  /// (bucket_plan.hpp). Smaller: communication begins earlier; larger: fewer calls.
  double bucket_size_mb = 25;
  /// Size limit of the first bucket in MiB: the last layers' gradients, which are ready first.
  double first_bucket_mb = 1;
  /// Number of virtual replicas of all members together, each with its own part of the data; 0: one for each
  /// member. A member computes its replicas one after the other. They are spread over the members in blocks
  /// as even as possible (own_replicas); fewer replicas than members leave the last members without. The bits
  /// depend on this number, not on the number of members, over backends that reduce in the fixed tree (ucx,
  /// local). The members with the most replicas determine the time of a step.
  int num_replicas = 0;
  /// Broadcast the buffers (running statistics) of the first replica to all others at the beginning of each
  /// step; otherwise each replica keeps its own.
  bool broadcast_buffers = true;
  /// Gradients are views of the buckets; otherwise they have their own memory and are copied.
  bool gradient_as_bucket_view = true;
  /// Allow parameters without a gradient: it counts as zero, and the optimizer does not step parameters that
  /// no replica used. Otherwise a missing gradient is an error.
  bool find_unused_parameters = false;
};

/// Data-parallel training (PyTorch's DistributedDataParallel): every member of a group trains a copy of the
/// model on its own part of the data. Gradients are averaged over all virtual replicas, bucket by bucket,
/// during the backward pass, so that all copies stay equal.
///
///     DataParallel replicated(model, world);
///     auto optimizer = replicated.make_optimizer(optim::Adam());
///     for (...) {
///       replicated.backward(loss(replicated.forward(samples), labels));  // of this member's part
///       optimizer->apply(step);
///     }
///
/// With a number of virtual replicas apart from the number of members (num_replicas), each member calls
/// forward and backward for each of own_replicas() in a step, in order, with the replica's data. A member
/// without replicas calls sync_gradients() once in their place:
///
///       for (int replica : replicated.own_replicas())
///         replicated.backward(loss(replicated.forward(samples_of(replica)), labels_of(replica)));
///       if (replicated.own_replicas().empty()) replicated.sync_gradients();
///       optimizer->apply(step);
///
/// Loss and weights then have the same bits whichever member hosts a replica, since gradients are summed in
/// the fixed tree of troupe/ops/tree_reduction.hpp over replicas (communicator::all_reduce_leaves).
/// Backward passes start from the gradient 1 / num_replicas() instead of 1, so that the sum over replicas is
/// the mean.
///
/// `backward` returns while gradients are still being reduced; the parameters' updates stay pending until
/// their sums arrive. `apply` of an optimizer from make_optimizer returns at once too: each bucket is stepped
/// when its sum arrives. The following wait for pending updates: the forward pass of each module, for its own
/// parameters; state_dict(); clipping; apply() of other optimizers; state() of the optimizer. Other code must
/// call synchronize() of the optimizer or wait_ready() of a parameter before it reads values or gradients;
/// otherwise parameter::value() throws std::logic_error. Tensors taken from parameters earlier are handles to
/// the same memory and show old elements while an update is pending.
///
/// All members make the same calls in the same order, including construction. The model and the group must
/// outlive this object, and no other calls may use the group during a backward pass. Not thread-safe: one
/// thread uses this object, its model and its optimizer.
///
/// A captured_pass does not capture its passes: forward, backward, sync_gradients and sync_parameters throw
/// std::logic_error during capture, before they change anything. See captured_pass for what to do instead.
///
/// After an exception in the middle of a step (for example collective_error) neither this object nor the
/// group can be used any more. The loss of a member may be reported by any call that waits, for example the
/// next forward pass. With make_optimizer some weights may have been stepped by then and others not: resume
/// training from a snapshot.
class DataParallel {
 public:
  /// Wraps a materialized model and broadcasts member 0's weights. Parameters that are frozen at this point
  /// are not reduced. Throws std::invalid_argument on every member, naming rank, parameter and shapes, if the
  /// members' models differ, also in the modes of modules (train, eval), or their options do.
  DataParallel(nn::Module& model, communicator& group, const data_parallel_options& options = {});
  /// The same with a ProcessGroup of a World, kept alive by this object: DataParallel(model,
  /// world.new_group({0, 2})).
  DataParallel(nn::Module& model, std::shared_ptr<communicator> group,
               const data_parallel_options& options = {});
  /// Over all processes of a World: DataParallel(model, world). Throws bad_input if the World's options have
  /// --replicas, which are those of a Pipeline.
  template <class Processes>
  requires requires(Processes& world) { std::shared_ptr<communicator>(world.default_group()); }
  DataParallel(nn::Module& model, Processes& world, const data_parallel_options& options = {})
      : DataParallel(model, group_without_pipeline_replicas(world, "DataParallel"), options) {}
  /// Waits for reductions in flight, unless the group has failed.
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  nn::Module& module() { return model_; }
  communicator& group() { return group_; }
  int num_replicas() const { return reducer_->replicas().num_leaves(); }
  /// The replicas of this member, ascending: numbers among all replicas. The same during the lifetime.
  const std::vector<int>& own_replicas() const { return reducer_->own_replicas(); }
  /// The one of own_replicas() whose forward or backward pass is next. Throws std::logic_error on a member
  /// without replicas.
  int current_replica() const;

  /// Creates an optimizer over the model's parameters whose `apply` returns at once. It steps the weights
  /// bucket by bucket as their gradient sums arrive, or chunk by chunk if the optimizer is_elementwise(),
  /// while later chunks are in flight. The weights have the same bits as with `optimizer` itself, which must
  /// step each parameter independently, as all optimizers of troupe::optim do. Clipping gradients before
  /// `apply` is possible and waits for them. The learning rate is read when the weights step. `apply` throws
  /// std::logic_error for gradients that were not averaged (loss.backward(), no_sync()).
  std::unique_ptr<optim::optimizer_state> make_optimizer(const optim::Optimizer& optimizer);

  /// Runs the model's forward pass with the buffers of the current replica, and with random numbers (dropout)
  /// that depend only on the step and the replica. Throws std::logic_error in training on a member without
  /// replicas.
  variable forward(const variable& input);

  /// Runs the backward pass from the current replica's mean loss, a scalar, and goes on to the next replica.
  /// After the last replica of this member, the gradients become the averages over all replicas (see above),
  /// and the optimizer may step.
  ///
  /// Throws std::invalid_argument if the loss is not a scalar, and std::logic_error on a member without
  /// replicas. Throws std::logic_error, naming the parameters, if parameters got no gradient (unless
  /// find_unused_parameters) or got one though they were frozen when the model was wrapped. It then aborts
  /// the group, so that no other member waits.
  void backward(const variable& loss);
  /// Ends the current replica's step after backward passes that the caller ran without
  /// DataParallel::backward, starting from `initial_gradient()`. Communication does not overlap with those
  /// passes. On a member without replicas: takes part in the step, once.
  void sync_gradients();
  /// 1 / num_replicas(), a scalar on the CPU, where the losses of troupe/autograd/functions.hpp are
  tensor initial_gradient() const;

  /// While it lives, `backward` only accumulates gradients of the current replica (gradient accumulation).
  /// The accumulated sum is not divided by the number of passes.
  class no_sync_scope {
   public:
    explicit no_sync_scope(DataParallel& model) : model_(model) { ++model_.num_no_sync_; }
    ~no_sync_scope() { --model_.num_no_sync_; }
    no_sync_scope(const no_sync_scope&) = delete;
    no_sync_scope& operator=(const no_sync_scope&) = delete;

   private:
    DataParallel& model_;
  };
  [[nodiscard]] no_sync_scope no_sync() { return no_sync_scope(*this); }

  /// Broadcasts member 0's parameters and buffers to all members.
  void sync_parameters();

  /// Sets the hook that reduces buckets from the next step on; a null pointer restores all_reduce.
  void register_comm_hook(std::shared_ptr<comm_hook> hook);

  /// Handles to the state that is not part of the model, for snapshots: the buffers of each replica and the
  /// hook's state.
  std::vector<named_tensor> state() const;
  /// The number of completed steps; set it when training resumes from a snapshot.
  std::uint64_t step() const { return step_; }
  void set_step(std::uint64_t step) { step_ = step; }

 private:
  void begin_step();
  void share_buffers();
  void end_replica();
  void require_frozen();

  nn::Module& model_;
  std::shared_ptr<communicator> kept_group_;
  communicator& group_;
  data_parallel_options options_;
  std::shared_ptr<gradient_reducer> reducer_;  // and its optimizer's
  std::vector<named_parameter> frozen_;
  replica_buffers buffers_;
  std::uint64_t step_ = 0;
  // The current step.
  int num_no_sync_ = 0;
  bool buffers_are_shared_ = false;  // broadcast in this step
  std::uint32_t num_passes_ = 0;     // of the current replica
};

}  // namespace troupe
