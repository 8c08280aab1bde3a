#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "troupe/optim/detail/gradient_norm.hpp"
#include "troupe/optim/loss_scaler.hpp"
#include "troupe/pipeline/detail/parameters/compressed_gradients.hpp"
#include "troupe/pipeline/detail/parameters/parameter_shards.hpp"
#include "troupe/pipeline/detail/parameters/tied_gradients.hpp"
#include "troupe/pipeline/detail/stage_reductions.hpp"
#include "troupe/pipeline/numeric_options.hpp"
#include "troupe/program/stage_program.hpp"

namespace troupe::detail {

/// Processes a stage's gradients between the last weight gradient of a step and the optimizer's step. Sums
/// the gradients of tied weights, then divides all by the loss scale and clips them by the norm over all
/// stages. Every stage takes the same decisions.
class step_gradients {
 public:
  /// `counted`: the parameters, or pieces, whose norms this stage contributes. `stepped`: the parameters that
  /// the stage's optimizers step; `by_use`: all their indices, in the order in which forwards need them.
  /// `tied` has weights in several stages if and only if the stage takes part in that reduction. `shards`: of
  /// the same parameters, where replicas own pieces of them, and outlives this; else null. Then what is said
  /// of `stepped` and its indices below is of the pieces.
  step_gradients(const numeric_options& numerics, const stage_reductions& reductions,
                 std::vector<optim::detail::indexed_parameter> counted,
                 const std::vector<named_parameter>& stepped, const std::vector<std::size_t>& by_use,
                 tied_gradients tied, parameter_shards* shards = nullptr);

  /// The factor of the loss.
  double loss_scale() const { return scaler_ ? scaler_->scale() : 1; }

  /// Called when all weight gradients of the step are complete.
  void accumulated();
  tensor partial_for_reduction(int reduction);
  void reduce(int reduction, const std::vector<tensor>& partials);
  /// See stage_program. After the reduction of tied weights, before that of norms.
  int num_buckets() const { return compressed_.buckets().count(); }
  std::optional<int> owner_of(int bucket) const { return compressed_.buckets().owner_of(bucket); }
  /// The first `num_elements` of the gradient of a parameter are complete. Calls `on_bucket` once for each
  /// complete bucket that this gradient has for itself; for none if it is to be added to those of other uses
  /// of the same weight.
  void give_buckets_of(const parameter& whose, std::int64_t num_elements,
                       const std::function<void(int bucket)>& on_bucket);
  tensor message_of(int bucket);
  /// Moves the gradients that are sent as they are to memory from `shared`, once. Where they are freed in
  /// each step, they come from there, until it is null.
  void share_memory(const program::stage_program::memory_source& shared);
  /// Steps parameters of `stepped` while gradients of others are still to come; false: none is set.
  struct part_stepper {
    /// Some elements of the parameter `which.index`, with their summed gradient.
    std::function<void(const optim::parameter_part& which, const tensor& gradient)> step;
    /// Called when all elements of parameter `index` are stepped.
    std::function<void(std::size_t index)> end;
    explicit operator bool() const { return static_cast<bool>(step); }
  };
  /// Gives the sums of large gradients to `step_part`, which steps them at once, while they are in the cache.
  /// If it is null, or this replica had no gradient, copies them to the gradients; likewise the small ones.
  void take_sums(int bucket, const std::vector<tensor>& sums, const part_stepper& step_part);
  /// See stage_program. Lets go of gradients all of whose buckets are read, if shards free them.
  void note_read(int bucket);
  /// Steps the parameters with small gradients, if their sums are there.
  void step_packed(const part_stepper& step_part);
  /// Whether parameter `index` of `stepped` was stepped as a whole by a part_stepper.
  bool is_stepped(std::size_t index) const { return exchanged_[index].is_whole; }
  /// Whether sums may be stepped before those of all other gradients are there.
  bool may_step_early() const { return !numerics_.needs_norm(); }

  /// The first parameter of this stage, as far as this replica steps it, whose gradient is infinite or NaN;
  /// null if there is none, non_finite_policy is go_on, or a lower loss scale may help. Call after the
  /// reductions and before the step.
  const parameter* first_non_finite() const;

  /// The step number for the optimizer, which does not count skipped steps; none if this step is skipped.
  /// Throws std::logic_error if a reduction is missing.
  std::optional<std::uint64_t> optimizer_step(std::uint64_t step) const;
  void mark_stepped();
  void discard();

  /// Called when parameter values were written from outside, for example loaded.
  void mark_changed() { tied_.mark_stepped(); }
  /// The state of compressed_gradients, which is this replica's; and that of the loss scaler, if any, or the
  /// number of skipped steps, which are equal in every stage.
  std::vector<named_tensor> state() const;

 private:
  /// What happened in this step to a parameter of `stepped`.
  struct exchanged {
    int num_given = 0;             ///< of its buckets, by give_buckets_of
    int num_read = 0;              ///< of them, by those who add them up
    std::int64_t num_stepped = 0;  ///< of its elements, by a part_stepper
    bool is_whole = false;         ///< all its elements are stepped
    bool is_finite = true;         ///< as far as it is stepped
  };

  void take_gradients_from(const program::stage_program::memory_source& shared);
  void note_piece_read(std::size_t index);
  void give_buckets_until(const parameter& stepped, std::int64_t num_elements,
                          const std::function<void(int bucket)>& on_bucket);
  void step(optim::parameter_part which, const std::vector<tensor>& parts, const part_stepper& step_part);
  void use_norm(double norm);
  bool is_own(std::size_t index) const { return !shards_ || shards_->is_owned(index); }
  const parameter* first_with_gradient() const;
  const parameter* find_non_finite() const;
  std::uint64_t num_skipped() const;

  numeric_options numerics_;
  std::size_t num_reductions_;  ///< number of reductions that this stage takes part in
  stage_reductions reductions_;
  std::vector<optim::detail::indexed_parameter> counted_;
  std::vector<parameter*> stepped_;
  std::vector<parameter*> own_;  ///< those of `stepped_` that this replica steps: without shards all
  parameter_shards* shards_;
  compressed_gradients compressed_;
  tied_gradients tied_;
  std::optional<optim::loss_scaler> scaler_;
  tensor skipped_steps_;            ///< i64 [], used if steps are skipped without a loss scaler
  bool has_shared_memory_ = false;  ///< share_memory was called
  // The current step.
  std::set<int> reduced_;
  std::vector<exchanged> exchanged_;  ///< [stepped]
  bool has_packed_ = false;           ///< the sums of small gradients
  bool is_finite_ = true;  ///< whether the gradients of all stages are finite, once norms are combined
  const parameter* non_finite_ =
      nullptr;  ///< the first non-finite parameter of this stage, if the step is skipped
};

}  // namespace troupe::detail
