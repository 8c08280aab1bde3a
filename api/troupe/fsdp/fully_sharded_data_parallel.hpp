#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "troupe/collective/communicator/communicator.hpp"
#include "troupe/data_parallel/group_of_world.hpp"
#include "troupe/data_parallel/replica_buffers.hpp"
#include "troupe/data_parallel/shard_strategy.hpp"
#include "troupe/nn/module.hpp"
#include "troupe/ops/copy_by_name.hpp"
#include "troupe/optim/loss_scaler.hpp"
#include "troupe/optim/optimizer.hpp"

namespace troupe {

namespace detail {
class sharded_model;
}

struct fully_sharded_options {
  /// full: parameters, gradients and the optimizer's state are divided; grad: values are whole everywhere;
  /// optimizer: whole gradients keep their memory from step to step, too. Not none: that is DataParallel.
  shard_strategy strategy = shard_strategy::full;
  /// Modules whose parameters are gathered together, by name, such as "transformer.h.0"; what is in none of
  /// them is a unit too. Empty: chosen by size.
  std::vector<std::string> units = {};
  /// The size of a unit chosen by size, in MiB of f32, > 0: modules that follow one another share a unit up
  /// to this size, and larger modules are divided into theirs. Larger: fewer calls; smaller: less memory.
  double unit_size_mb = 16;
  /// false: values that a forward pass has gathered stay until the backward pass has used them: half the
  /// gathers, and the memory of whole parameters.
  bool reshard_after_forward = true;
  /// So many units are on their way while one is used, >= 0.
  int gather_ahead = 1;
  /// Number of virtual replicas of all members together, a multiple of the number of members; 0: one for each
  /// member. The bits depend on it alone. A member computes its replicas one after the other, and whole sums
  /// of gradients stay between their passes.
  int num_replicas = 0;
  /// As data_parallel_options::broadcast_buffers.
  bool broadcast_buffers = true;
  /// Allow parameters without a gradient, the same ones on all members. They count as zeros, and the
  /// optimizer does not step parameters that no replica used.
  bool find_unused_parameters = false;
  /// For models that are only described: initializes them from this seed, as materialize(seed) does, unit by
  /// unit, so that no process ever holds the whole model.
  std::optional<std::uint64_t> seed = {};
};

/// What a member of a FullyShardedDataParallel holds, in bytes, and what it has done.
struct sharding_statistics {
  std::size_t own_parameters = 0;  ///< its part of the parameters
  std::size_t own_gradients = 0;   ///< its part of the sums of gradients; 0 before the first step
  std::size_t gathered = 0;        ///< whole values that are there now
  std::size_t blocks = 0;          ///< kept for whole values and gradients, in use or not
  std::uint64_t num_gathers = 0;   ///< of units, since the beginning
};

/// Data-parallel training whose parameters, gradients and optimizer state are divided among the members of a
/// group (ZeRO, Rajbhandari et al. 2020; PyTorch's FSDP, Zhao et al. 2023). Each member owns a part of each
/// unit of the model; a unit's parameters are gathered when an operation reads one, and let go of when
/// another unit is read. Gradients are summed over all virtual replicas as a backward pass completes a unit.
/// The bits of losses and weights are those of DataParallel with the same number of virtual replicas.
///
///     FullyShardedDataParallel sharded(model, world);
///     auto optimizer = sharded.make_optimizer(optim::Adam());
///     for (...) {
///       sharded.backward(loss(sharded.forward(samples), labels));  // of this member's part
///       optimizer->apply(step);
///     }
///
/// Memory of a member, with n members: a part of about 1/n of parameters, gradients and optimizer state, and
/// blocks for whole units. These are 1 + gather_ahead of values, and in backward up to 3 of gradients, each
/// of the largest unit's size. With `optimizer` and `grad` values are whole. See estimate_sharding.
///
/// All members make the same passes, evaluations too, through the same parts of the model. If they do not,
/// the optimizer's step throws std::logic_error, or calls fail or time out. state_dict() of this object and
/// of the model are calls of all members. What is read outside of passes stays whole until the next one. Code
/// that reads a value by other means than the operations of functions.hpp calls parameter::wait_ready before.
/// Tensors taken from parameters keep the memory of a whole unit.
///
/// The model and the group must outlive this object, and no other calls may use the group during a pass. The
/// model stays divided when this object is gone: read state_dict() before. Not thread-safe. A captured_pass
/// does not capture its passes, and communication hooks are for DataParallel. After an exception in the
/// middle of a step (for example collective_error) neither this object nor the group can be used any more.
class FullyShardedDataParallel {
 public:
  /// Wraps a materialized model, with member 0's weights, or a described one with options.seed. Parameters
  /// that are frozen at this point are divided too, but not summed. Throws std::invalid_argument on every
  /// member if their models or options differ, and for options out of range.
  FullyShardedDataParallel(nn::Module& model, communicator& group, const fully_sharded_options& options = {});
  /// The same with a ProcessGroup of a World, kept alive by this object.
  FullyShardedDataParallel(nn::Module& model, std::shared_ptr<communicator> group,
                           const fully_sharded_options& options = {});
  /// Divided among the members of `shards`, and likewise in other such groups (PyTorch's HYBRID_SHARD).
  /// `copies` are the members with the same part. Gathers stay within `shards`, and sums of parts go to all
  /// `copies`. For example FullyShardedDataParallel(model, mesh["shard"], mesh["replicate"]) of a mesh with
  /// the axes replicate and shard. Replicas are counted group by group. The bits are those of DataParallel if
  /// the number of replicas of a group is a power of two.
  FullyShardedDataParallel(nn::Module& model, std::shared_ptr<communicator> shards,
                           std::shared_ptr<communicator> copies, const fully_sharded_options& options = {});
  /// Over all processes of a World. Throws bad_input if its options have --replicas, which are those of a
  /// Pipeline.
  template <class Processes>
  requires requires(Processes& world) { std::shared_ptr<communicator>(world.default_group()); }
  FullyShardedDataParallel(nn::Module& model, Processes& world, const fully_sharded_options& options = {})
      : FullyShardedDataParallel(model, group_without_pipeline_replicas(world, "FullyShardedDataParallel"),
                                 options) {}
  /// Waits for calls in flight, unless the group has failed.
  ~FullyShardedDataParallel();
  FullyShardedDataParallel(const FullyShardedDataParallel&) = delete;
  FullyShardedDataParallel& operator=(const FullyShardedDataParallel&) = delete;

  nn::Module& module() { return model_; }
  /// Among whose members the model is divided.
  communicator& group() { return group_; }
  int num_replicas() const;
  /// The replicas of this member, ascending: numbers among all replicas.
  const std::vector<int>& own_replicas() const { return own_replicas_; }
  /// The one of own_replicas() whose forward or backward pass is next.
  int current_replica() const;

  /// Creates an optimizer of this member's parts. One that is not elementwise (LAMB) gets whole parameters:
  /// the model is cut anew between them, less evenly. Clip with clip_grad_norm of this object. All members
  /// call it. Only such an optimizer steps the model: others throw.
  std::unique_ptr<optim::optimizer_state> make_optimizer(const optim::Optimizer& optimizer);

  /// Runs the model's forward pass as DataParallel::forward does.
  variable forward(const variable& input);
  /// Runs the backward pass from the current replica's mean loss, a scalar, and goes on to the next replica.
  /// Throws as DataParallel::backward does.
  void backward(const variable& loss);

  /// While it lives, `backward` only accumulates gradients of the current replica, whole ones.
  class no_sync_scope {
   public:
    explicit no_sync_scope(FullyShardedDataParallel& model) : model_(model) { ++model_.num_no_sync_; }
    ~no_sync_scope() { --model_.num_no_sync_; }
    no_sync_scope(const no_sync_scope&) = delete;
    no_sync_scope& operator=(const no_sync_scope&) = delete;

   private:
    FullyShardedDataParallel& model_;
  };
  [[nodiscard]] no_sync_scope no_sync() { return no_sync_scope(*this); }

  /// optim::clip_grad_norm over the gradients of all members, which all of them call: the same factor, and
  /// the same bits as on whole gradients on the CPU.
  double clip_grad_norm(double max_norm);
  /// loss_scaler::unscale_and_check with the same result on all members, which all of them call.
  bool unscale_and_check(const optim::loss_scaler& scaler);

  /// All parameters and buffers as Module::state_dict names them, copies in CPU memory, on every member. All
  /// members call it.
  std::vector<named_tensor> state_dict();
  /// Takes what this member owns from whole tensors, and its buffers. All members call it, with the same
  /// tensors. Throws std::runtime_error and changes nothing as Module::load_state_dict does.
  unmatched_names load_state_dict(const std::vector<named_tensor>& saved, copy_by_name_options options = {});
  /// The state of an optimizer of make_optimizer as that of one over the whole model, on every member in CPU
  /// memory. All members call it. Loads on any number of members.
  std::vector<named_tensor> optimizer_state_dict(const optim::optimizer_state& optimizer);
  /// All members call it, with the same tensors. Throws std::runtime_error on every member and changes
  /// nothing if something is missing, unknown, or of another shape.
  void load_optimizer_state(optim::optimizer_state& optimizer, const std::vector<named_tensor>& saved);

  sharding_statistics statistics() const;
  /// The names of the units and their bytes, in the order of the forward pass.
  std::vector<std::pair<std::string, std::size_t>> units() const;

  /// Handles to the state that is not part of the model, for snapshots: the buffers of each replica.
  std::vector<named_tensor> state() const;
  /// The number of completed steps; set it when training resumes from a snapshot.
  std::uint64_t step() const { return step_; }
  void set_step(std::uint64_t step) { step_ = step; }

 private:
  friend class sharded_copies;
  void share_buffers();
  void broadcast_buffers();
  void require_frozen();
  void end_replica();

  nn::Module& model_;
  std::shared_ptr<communicator> kept_group_;
  std::shared_ptr<communicator> copies_;  // null: one division
  communicator& group_;
  fully_sharded_options options_;
  std::shared_ptr<detail::sharded_model> sharded_;  // and its optimizer's
  std::vector<int> own_replicas_;
  replica_buffers buffers_;
  std::uint64_t step_ = 0;
  // The current step.
  int num_no_sync_ = 0;
  bool buffers_are_shared_ = false;
  std::uint32_t num_passes_ = 0;  // of the current replica
};

}  // namespace troupe
