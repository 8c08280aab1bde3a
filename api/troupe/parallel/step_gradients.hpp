#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "troupe/optim/loss_scaler.hpp"
#include "troupe/parallel/gradient_norm.hpp"
#include "troupe/parallel/numerics.hpp"
#include "troupe/parallel/stage_reductions.hpp"
#include "troupe/parallel/tied_gradients.hpp"

namespace troupe {

/// What happens to a stage's gradients between the last weight gradient of a step and the optimizer's step:
/// those of tied weights are added up, then all are divided by the loss scale and clipped to the norm over
/// all stages. Every stage comes to the same decisions.
class step_gradients {
 public:
  /// `counted`: the parameters whose norms this stage gives. `stepped`: those that its optimizer steps.
  /// `tied` has weights in several stages if and only if the stage takes part in that reduction.
  step_gradients(const numerics& how, const stage_reductions& reductions,
                 std::vector<placed_parameter> counted, std::vector<parameter*> stepped, tied_gradients tied);

  /// What the loss is multiplied with.
  double loss_scale() const { return scaler_ ? scaler_->scale() : 1; }

  /// All weight gradients of the step are there.
  void accumulated() { tied_.combine_own(); }
  tensor share_of(int reduction);
  void reduce(int reduction, const std::vector<tensor>& shares);

  /// The first parameter of this stage whose gradient is infinite or NaN; null if there is none, or
  /// non_finite_policy does not want to know. After the reductions, before the step.
  const parameter* first_non_finite() const;

  /// The number of the optimizer's step, in which skipped steps do not count; none: this one is skipped.
  /// Throws std::logic_error if a reduction has not taken place.
  std::optional<std::uint64_t> optimizer_step(std::uint64_t step) const;
  void stepped();
  void discard();

  /// Values were written to from outside.
  void changed() { tied_.stepped(); }
  /// What the loss scaler keeps, if there is one, and the number of skipped steps; the same in every stage.
  std::vector<named_tensor> state() const;

 private:
  void use_norm(double norm);
  const parameter* find_non_finite() const;
  std::uint64_t num_skipped() const;

  numerics how_;
  std::size_t num_reductions_;  ///< that this stage takes part in
  stage_reductions reductions_;
  std::vector<placed_parameter> counted_;
  std::vector<parameter*> stepped_;
  tied_gradients tied_;
  std::optional<optim::loss_scaler> scaler_;
  tensor skipped_steps_;  ///< i64 [], where steps are skipped without a loss scaler
  // The current step.
  std::set<int> reduced_;
  bool is_finite_ = true;                  ///< of all stages, as far as norms were combined
  const parameter* non_finite_ = nullptr;  ///< where this step is skipped: the first here that is not
};

}  // namespace troupe
