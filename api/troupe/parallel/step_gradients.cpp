#include "troupe/parallel/step_gradients.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "troupe/ops/convert.hpp"
#include "troupe/ops/reduction.hpp"
#include "troupe/optim/gradients_of.hpp"
#include "troupe/parallel/compression/sparse_gradients.hpp"

namespace troupe {
namespace {

std::vector<tensor> in_f32(std::vector<tensor> sums) {
  for (auto& each : sums)
    if (each.dtype() != dtype::f32) each = cast(each, dtype::f32);
  return sums;
}

}  // namespace

step_gradients::step_gradients(const numeric_options& numerics, const stage_reductions& reductions,
                               std::vector<indexed_parameter> counted, std::vector<parameter*> stepped,
                               tied_gradients tied)
    : numerics_(numerics),
      num_reductions_((tied.has_shared() ? 1 : 0) + (numerics.needs_norm() ? 1 : 0)),
      reductions_(reductions),
      counted_(std::move(counted)),
      stepped_(std::move(stepped)),
      pieces_(stepped_),
      tied_(std::move(tied)),
      exchanged_(stepped_.size()) {
  residuals_.resize(stepped_.size());
  for (int piece = 0; piece < pieces_.count(); ++piece)
    if (is_sparse(piece)) {
      auto index = pieces_.part_of(piece).index;
      if (!residuals_[index].defined()) residuals_[index] = tensor::zeros(stepped_[index]->extents);
    }
  if (numerics.scales_loss())
    scaler_.emplace(numerics.loss_scale);
  else if (numerics.skips_steps())
    skipped_steps_ = tensor::zeros({}, dtype::i64);
}

tensor step_gradients::contribution_to(int reduction) {
  if (reduction == reductions_.tied) return tied_.share();
  if (reduction == reductions_.norms) return gradient_norms(counted_);
  throw std::logic_error("[module_program::contribution_to] expected one of " +
                         std::to_string(reductions_.stages.size()) + " reductions, got number " +
                         std::to_string(reduction));
}

void step_gradients::reduce(int reduction, const std::vector<tensor>& shares) {
  if (reduction == reductions_.tied)
    tied_.combine(shares);
  else
    use_norm(combined_norm(shares));
  reduced_.insert(reduction);
}

void step_gradients::give_pieces_of(const parameter& complete,
                                    const std::function<void(int piece)>& on_piece) const {
  if (tied_.is_use(complete)) return;
  auto [first, count] = pieces_.pieces_of(complete);
  for (int i = 0; i < count; ++i) on_piece(first + i);
}

tensor step_gradients::replica_gradients(int piece) {
  if (!pieces_.is_packed(piece)) {
    auto index = pieces_.part_of(piece).index;
    exchanged_[index].had_gradient = stepped_[index]->has_gradient;
  }
  if (is_sparse(piece)) return take_largest_of(piece);
  auto elements = pieces_.elements_of(piece);
  return numerics_.gradient_sync == dtype::f32 ? elements : cast(elements, numerics_.gradient_sync);
}

/// What a replica without a gradient has held back waits for its next one.
tensor step_gradients::take_largest_of(int piece) {
  const auto& part = pieces_.part_of(piece);
  if (!exchanged_[part.index].had_gradient) return nothing_largest();
  return take_largest(pieces_.elements_of(piece), optim::elements_of(residuals_[part.index], part),
                      num_largest(numerics_.top_k_gradients, part.count));
}

void step_gradients::take_summed_gradients(int piece, const std::vector<tensor>& sums,
                                           const part_stepper& step_part) {
  auto parts =
      is_sparse(piece) ? std::vector{sum_of_largest(sums, pieces_.part_of(piece).count)} : in_f32(sums);
  bool is_whole = pieces_.is_packed(piece) || !step_part;
  if (is_whole || !exchanged_[pieces_.part_of(piece).index].had_gradient)
    return pieces_.set_elements(piece, parts);
  auto next = pieces_.part_of(piece);
  auto& found = exchanged_[next.index];
  found.is_stepped = true;
  for (const auto& part : parts) {
    next.count = part.num_elements();
    if (numerics_.on_non_finite != non_finite_policy::go_on && found.is_finite)
      found.is_finite = all_finite(std::span(&part, 1));
    step_part(next, part);
    next.first += next.count;
  }
}

void step_gradients::end_early_steps() {
  for (std::size_t i = 0; i < stepped_.size(); ++i)
    if (exchanged_[i].is_stepped) stepped_[i]->mark_stepped_with_converted();
}

/// Applies loss scale and clipping in one pass over the gradients, if necessary.
void step_gradients::use_norm(double norm) {
  is_finite_ = std::isfinite(norm);
  if (!is_finite_ && numerics_.skips_steps()) {
    non_finite_ = find_non_finite();
    return optim::drop_gradients(stepped_);
  }
  auto scale = loss_scale();
  auto clip = numerics_.clip_grad_norm > 0 ? clipping_factor(norm / scale, numerics_.clip_grad_norm) : 1;
  if (auto factor = clip / scale; factor != 1) scale_all(optim::gradients_of(stepped_), factor);
}

const parameter* step_gradients::find_non_finite() const {
  auto is_finite = [this](std::size_t index) {
    const auto& found = exchanged_[index];
    const auto* each = stepped_[index];
    if (found.is_stepped) return found.is_finite;
    return !each->needs_step() || all_finite(std::span(&each->gradient(), 1));
  };
  for (std::size_t index = 0; index < stepped_.size(); ++index)
    if (!is_finite(index)) return stepped_[index];
  return nullptr;
}

const parameter* step_gradients::first_non_finite() const {
  // Steps skipped by loss scaling are normal and are not reported.
  if (scaler_ || numerics_.on_non_finite == non_finite_policy::go_on) return nullptr;
  if (numerics_.skips_steps()) return non_finite_;
  auto is_known = numerics_.needs_norm() && is_finite_;
  return is_known ? nullptr : find_non_finite();
}

std::uint64_t step_gradients::num_skipped() const {
  if (scaler_) return scaler_->num_skipped();
  return skipped_steps_.defined() ? static_cast<std::uint64_t>(skipped_steps_.values<std::int64_t>()[0]) : 0;
}

std::optional<std::uint64_t> step_gradients::optimizer_step(std::uint64_t step) const {
  if (reduced_.size() != num_reductions_)
    throw std::logic_error("[module_program::apply] expected " + std::to_string(num_reductions_) +
                           " reductions before step " + std::to_string(step) + ", got " +
                           std::to_string(reduced_.size()) + ": plan them as reductions_of says");
  if (!is_finite_ && numerics_.skips_steps()) return {};
  return step - num_skipped();
}

void step_gradients::mark_stepped() {
  if (scaler_) scaler_->update(is_finite_);
  if (skipped_steps_.defined() && !is_finite_) ++skipped_steps_.values<std::int64_t>()[0];
  discard();
}

void step_gradients::discard() {
  tied_.mark_stepped();
  reduced_.clear();
  std::ranges::fill(exchanged_, exchanged{});
  is_finite_ = true;
  non_finite_ = nullptr;
}

std::vector<named_tensor> step_gradients::state() const {
  if (scaler_) return scaler_->state();
  if (skipped_steps_.defined()) return {{"skipped_steps", skipped_steps_}};
  return {};
}

}  // namespace troupe
