#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "troupe/nn/module.hpp"
#include "troupe/optim/optimizer.hpp"
#include "troupe/parallel/gradient_reducer.hpp"
#include "troupe/parallel/replica_buffers.hpp"

namespace troupe {

struct data_parallel_options {
  /// MiB of gradients that are reduced together, less where the model is small (bucket_plan.hpp). Smaller:
  /// communication begins earlier; larger: fewer calls.
  double bucket_size_mb = 25;
  /// The same, of the first bucket: the last layers' gradients, which come first.
  double first_bucket_mb = 1;
  /// Virtual replicas that every member hosts, one after the other. Their number in all, not who hosts them,
  /// decides the bits. A power of two, unless the group has one member.
  int replicas_per_rank = 1;
  /// Running statistics of the first replica come to all others at the beginning of each step; otherwise each
  /// replica keeps its own.
  bool broadcast_buffers = true;
  /// Gradients are written where they are reduced; otherwise they have memory of their own and are copied.
  bool gradient_as_bucket_view = true;
  /// Parameters may go without a gradient: they count as zeros, and those that no replica used keep theirs
  /// away from the optimizer. Otherwise that is an error.
  bool find_unused_parameters = false;
};

/// A model of which every member of a group trains a copy on its own part of the data, so that all copies
/// stay equal: gradients are averaged over all virtual replicas, in buckets, while the backward pass brings
/// them.
///
///     DataParallel replicated(model, world);
///     auto optimizer = replicated.make_optimizer(optim::Adam());
///     for (...) {
///       replicated.backward(loss(replicated.forward(samples), labels));  // of this member's part
///       optimizer->apply(step);
///     }
///
/// A member that hosts k replicas calls forward and backward k times for each step, with the data of its
/// replicas in order (current_replica() tells which is next). Loss and weights then have the same bits
/// whoever hosts the replicas: their gradients are summed in the fixed tree of troupe/ops/tree_reduction.hpp.
/// The mean is folded into the loss: backward passes begin with 1 / num_replicas(), nothing is divided later.
///
/// `backward` returns while gradients are still being reduced: the parameters have a pending update until
/// their sums have come. An optimizer of make_optimizer does not wait either: `apply` returns at once, each
/// bucket's step is made when its sum has come, and the update is pending until then. What waits for it: the
/// forward pass of the modules, each for its own parameters; state_dict(), clipping, other optimizers' apply,
/// and the optimizer's state(). Other code calls the optimizer's synchronize(), or a parameter's
/// wait_ready(), before it reads values or gradients; without it parameter::value() throws std::logic_error.
/// Tensors that were taken from parameters before are handles to the same memory: they show old elements
/// while an update is pending.
///
/// All members make the same calls in the same order, construction included; their collective calls are in
/// one order whatever the order of gradients. Model and group outlive it, and the group carries nothing else
/// while a backward pass runs. One thread uses it, its model and its optimizer.
///
/// Its passes are not for captured_pass, which shows what is: forward, backward, sync_gradients and
/// sync_parameters throw std::logic_error while a pass is recorded, before they change anything.
///
/// What is thrown in the middle of a step, collective_error among it, leaves it of no use, as it does the
/// group; a lost member may be told by whatever waits, the next forward pass for example. With
/// make_optimizer some of the weights may have made the step by then and others not: training goes on from a
/// snapshot.
class DataParallel {
 public:
  /// Wraps a materialized model; parameters that are frozen by then have no part in it. Brings member 0's
  /// weights to all. Throws std::invalid_argument on every member, naming rank, parameter and shapes, if
  /// their models or options differ.
  DataParallel(nn::Module& model, communicator& group, const data_parallel_options& options = {});
  /// The same with a ProcessGroup of a World, which it keeps: DataParallel(model, world.new_group({0, 2})).
  DataParallel(nn::Module& model, std::shared_ptr<communicator> group,
               const data_parallel_options& options = {});
  /// Over all processes of a World: DataParallel(model, world).
  template <class Processes>
  requires requires(Processes& world) { std::shared_ptr<communicator>(world.default_group()); }
  DataParallel(nn::Module& model, Processes& world, const data_parallel_options& options = {})
      : DataParallel(model, std::shared_ptr<communicator>(world.default_group()), options) {}
  /// What is on its way comes first, unless the group has failed.
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  nn::Module& module() { return model_; }
  communicator& group() { return group_; }
  int num_replicas() const { return group_.size() * options_.replicas_per_rank; }
  /// Among all replicas, the one whose forward or backward comes next.
  int current_replica() const { return group_.rank() * options_.replicas_per_rank + reducer_->turn(); }

  /// An optimizer over the model's parameters whose `apply` returns at once: weights step bucket by bucket,
  /// or piece by piece if it steps_elements_alone(), as their gradients come, beside what is still on its
  /// way, and with the bits that `how` would give otherwise, which must treat each parameter by itself, as
  /// all optimizers here do. Gradients may be clipped before `apply`, which waits for them. Learning rates
  /// are asked for when weights step. `apply` throws std::logic_error for gradients that were not averaged
  /// (loss.backward(), no_sync()).
  std::unique_ptr<optim::optimizer_state> make_optimizer(const optim::Optimizer& how);

  /// The model's forward pass, with the buffers of the current replica, and random numbers (dropout) that
  /// depend on step and replica only.
  variable forward(const variable& input);

  /// The backward pass from the current replica's mean loss, a scalar, and the end of its turn: after that of
  /// the last one the parameters' gradients become the averages (see above), and optimizers may step. Throws
  /// std::invalid_argument for a loss that is no scalar, and std::logic_error naming the parameters that got
  /// no gradient, unless they may, or that got one and were frozen when the model was wrapped: the group is
  /// aborted then, so that nobody waits for them.
  void backward(const variable& loss);
  /// The end of the current replica's turn for those who ran the backward passes themselves: beginning with
  /// `initial_gradient()` and with nothing hidden behind them.
  void sync_gradients();
  /// 1 / num_replicas(), where the group's tensors are
  tensor initial_gradient() const;

  /// While it lives, `backward` adds to the gradients of the current replica and does not end its turn:
  /// several backward passes for one step. Scale their losses to taste; nothing is divided by their number.
  class no_sync_scope {
   public:
    explicit no_sync_scope(DataParallel& of) : of_(of) { ++of_.num_no_sync_; }
    ~no_sync_scope() { --of_.num_no_sync_; }
    no_sync_scope(const no_sync_scope&) = delete;
    no_sync_scope& operator=(const no_sync_scope&) = delete;

   private:
    DataParallel& of_;
  };
  [[nodiscard]] no_sync_scope no_sync() { return no_sync_scope(*this); }

  /// Member 0's parameters and buffers come to all members.
  void sync_parameters();

  /// Reduces buckets from the next step on, instead of all_reduce. A null pointer: all_reduce again.
  void register_comm_hook(std::shared_ptr<comm_hook> hook);

  /// Live handles of what belongs to replicas and not to the model: buffers of each replica, and the hook's.
  std::vector<named_tensor> state() const;
  /// Steps ended so far; to be set when training goes on from a snapshot.
  std::uint64_t step() const { return step_; }
  void set_step(std::uint64_t step) { step_ = step; }

 private:
  void end_turn();
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
