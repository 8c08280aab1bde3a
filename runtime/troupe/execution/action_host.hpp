#pragma once
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "troupe/execution/replicas/replica_group.hpp"
#include "troupe/program/batch_source.hpp"
#include "troupe/program/stage_compute.hpp"
#include "troupe/schedule/cut.hpp"
#include "troupe/schedule/plan.hpp"
#include "troupe/transport/tensor_tag.hpp"

namespace troupe::execution {

/// What a plan is run for.
enum class pass_kind : std::uint8_t {
  train,
  evaluate,  ///< forwards, and the loss's metrics
  predict    ///< forwards, whose outputs the host gets
};

/// What an interpreter needs from the device that it runs on. Called on the thread that calls run_next.
class action_host {
 public:
  virtual ~action_host() = default;
  /// The samples of the current step; null until they are loaded.
  virtual const batch* samples() = 0;
  /// Sends a tensor, in the memory of any device, to the device of the stage, replica and slice in the tag,
  /// which is another one. It gets the tensor in the memory of the CPU or of a GPU.
  virtual void send(const transport::tensor_tag& tag, tensor value) = 0;
  /// See replica_exchange::sum_memory, of the Gs of `stage` over dp.
  virtual tensor sum_memory(int /*stage*/, int /*bucket*/, std::int64_t num_elements, dtype type) {
    return tensor::empty({num_elements}, type);
  }
  /// The group over which the replicas of `stage` add up its gradients; null: by messages to each other. May
  /// wait until the group is there; throws action_interrupted. The same in all Gs of a generation.
  virtual const replica_group* group_of(int /*stage*/) { return nullptr; }
  /// It has failed, though no call of it differed: what it adds up never ends.
  virtual void on_group_failure(const std::exception& /*cause*/) {}
  /// Within an action: puts what has come from other lanes into the inbox. The default does nothing, for
  /// hosts that put it there at once.
  virtual void take_arrivals() {}
  /// Within the action `op`: waits for something to come from other lanes, for the action at `awaited`, and
  /// puts it into the inbox. Throws action_interrupted. The default throws std::logic_error, for hosts whose
  /// lanes run no passes together (plan::joint) and that defer no updates.
  virtual void wait_within(const action& op, const plan_position& awaited);
  /// Whether wait_within may be called.
  virtual bool may_wait_within() { return false; }
  /// Whether the next step may begin before the updates of this one are complete; asked in a G.
  virtual bool may_defer_updates() { return false; }
  /// The output of the stage that computes the loss, when predicting.
  virtual void on_prediction(const action& op, const tensor& output) = 0;
  /// Before and after an action whose inputs are there.
  virtual void on_begin(const action& op) = 0;
  virtual void on_end(const action& op) = 0;
  /// The same for the G and A of a deferred update, of the current step or the one before. They may lie
  /// within another action. A G begins again each time it goes on.
  virtual void on_begin_deferred(const action& /*op*/, std::uint64_t /*step*/) {}
  virtual void on_end_deferred(const action& /*op*/, std::uint64_t /*step*/) {}
  /// A U is about to send the weights that this lane owns.
  virtual void on_gather(const action& /*op*/) {}
  /// `op`, an A or a G over dp, is about to change parameters or the state of the optimizer. Called before
  /// each change.
  virtual void before_update(const action& /*op*/) {}
  /// The metrics of the step, when all forwards of the stage that computes the loss are done; asked once a
  /// step, if the replicas share them.
  virtual program::step_metrics metrics() { return {}; }
  /// Those of all replicas, in order.
  virtual void on_replica_metrics(const std::vector<program::step_metrics>&) {}
  /// Before the optimizer step `op`: what a replica found infinite or NaN, for which this stage is to do as
  /// if it had found it. Empty: nothing, and the stage is asked.
  virtual std::string non_finite_elsewhere(const action&) { return {}; }
  /// Before the optimizer step `op`: the stage found an infinite or NaN loss or gradient (`what`). Returns
  /// whether the step is applied all the same.
  virtual bool on_non_finite(const action& op, const std::string& what) = 0;
};

}  // namespace troupe::execution
