#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "troupe/layout/mesh_shape.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::program {

/// The gradients of a stage, and what becomes of them in an optimizer step: combined with those of other
/// stages and lanes, applied to the parameters.
class stage_parameters {
 public:
  virtual ~stage_parameters() = default;

  /// What a reduction of the plan combines of this stage: its partial gradients of tied weights, or the norms
  /// of its gradients. `reduce` gets those of all stages. The elements must not change afterwards. The
  /// default throws std::logic_error, for programs without reductions.
  virtual tensor partial_for_reduction(int reduction);

  /// Combines the partials of all participating stages, lane by lane and in ascending stage order, this one's
  /// included. All get the same partials in the same order, so all compute the same bits.
  virtual void reduce(int reduction, const std::vector<tensor>& partials);

  // What a G takes from lane to lane along its axis, bucket by bucket. Over dp these are this replica's
  // gradients, over tp those of parameters that all slices have whole, as its own passes have left them.

  /// How many buckets there are in optimizer step `step`, the same in all lanes. 0: nothing is exchanged in
  /// this step.
  virtual int num_buckets(layout::mesh_axis axis, std::uint64_t step);
  /// One of these:
  /// - A complete bucket: f32, bf16 or f16 [n] in the memory of the CPU or of the program's device, the same
  ///   dtype and n > 0 in all lanes. Then take_sums gets the sum in that dtype, which is rounded once. The
  ///   elements must not change until then, or until note_read.
  /// - A message: i32 [n] of any n > 0, in new memory each time. Then take_sums gets those of all lanes, in
  ///   order.
  /// - Undefined: the bucket depends on sums that are not there yet. It is asked for again after each
  ///   take_sums.
  ///
  /// The default throws std::logic_error, for programs that run in one lane.
  virtual tensor bucket(layout::mesh_axis axis, int number);
  /// `parts`: together, one after the other, the n elements of the bucket, which must not be written, nor
  /// used after the return: they may be in memory of another process. May step the weights that they belong
  /// to, before apply. Buckets come in any order, each once a step, after the last backward_weight; with
  /// defer_update also within forwards of the next step. Not called for a bucket that another replica owns.
  virtual void take_sums(layout::mesh_axis axis, int number, const std::vector<tensor>& parts);
  /// The replica that alone gets the sums of a bucket over dp, since it owns what they belong to, and steps
  /// it; none: all get them. The same in all replicas. The default says none.
  virtual std::optional<int> owner_of(layout::mesh_axis axis, int number);
  /// The owner of a bucket, this replica or another one, has read what `bucket` returned, which may change
  /// from now on. Once a step for each bucket that has an owner, before its take_sums, at the earliest within
  /// the last backward. The default does nothing.
  virtual void note_read(layout::mesh_axis axis, int number);

  // What a U gathers over the replicas: weights that one of them owns and has stepped, bucket by bucket.

  struct weight_bucket {
    int owner = 0;           ///< replica
    bool is_stepped = true;  ///< false: no optimizer step changes them: gathered once if weights are kept
  };
  /// Constant, and the same in all replicas. The default says none, for programs whose replicas hold and step
  /// all of their weights.
  virtual std::vector<weight_bucket> weight_buckets();
  /// Of a bucket that this replica owns: f32 [n], n > 0. The elements must not change until all replicas have
  /// given gradients that were computed with them.
  virtual tensor weights_in(int bucket);
  /// The weights of a bucket of another replica, which must not be written, nor used after the return.
  virtual void take_weights(int bucket, const tensor& weights);
  /// false: passes have whole weights between a U and the next S of the plan only, which ends each step.
  virtual bool keeps_weights() { return true; }
  /// Called in a U, before it takes weights, and in an S, of a program that does not keep them.
  virtual void attach_weights() {}
  virtual void release_weights() {}
  /// Called in a U with weights still to come, in these buckets: whether forwards may begin before they are
  /// taken. If so, a forward calls `progress`, within which take_weights is called, as with defer_update,
  /// until `end_gather`. The default says no.
  virtual bool defer_gather(const std::vector<int>& /*missing*/,
                            const std::function<void(bool waits)>& /*progress*/) {
    return false;
  }
  virtual void end_gather() {}

  /// Memory of any value that the processes of other replicas read in place if they are on this host.
  using memory_source = std::function<tensor(shape extents, dtype type)>;
  /// Called between steps, in each generation, null if no other process has replicas of the stage: buckets
  /// over dp, but for messages, cost these no copy if they are in this memory. The default does nothing.
  virtual void share_gradients(const memory_source& /*shared*/) {}

  /// Called in a G that apply follows, with buckets still to come: whether forwards of the next step may
  /// begin before they are taken and apply is called. If so, a forward waits for the weights that it reads:
  /// it calls `progress`, within which take_sums and apply are called, from time to time, and
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
};

}  // namespace troupe::program
