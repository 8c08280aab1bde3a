#include "troupe/pipeline/detail/step_gradients.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>

#include "troupe/ops/reduction.hpp"
#include "troupe/optim/detail/gradients_of.hpp"
#include "troupe/tensor/async/async_device_copy.hpp"

namespace troupe::detail {

step_gradients::step_gradients(const numeric_options& numerics, const stage_reductions& reductions,
                               std::vector<optim::detail::indexed_parameter> counted,
                               const std::vector<named_parameter>& stepped,
                               const std::vector<std::size_t>& by_use, tied_gradients tied,
                               parameter_shards* shards)
    : numerics_(numerics),
      num_reductions_((tied.has_shared() ? 1 : 0) + (numerics.needs_norm() ? 1 : 0)),
      reductions_(reductions),
      counted_(std::move(counted)),
      shards_(shards),
      compressed_(numerics, shards ? shards->sent() : stepped, shards ? shards->by_use() : by_use,
                  shards ? shards->owners() : bucket_owners()),
      tied_(std::move(tied)) {
  for (const auto& each : shards ? shards->pieces() : stepped) stepped_.push_back(each.target);
  exchanged_.resize(stepped_.size());
  for (std::size_t index = 0; index < stepped_.size(); ++index)
    if (is_own(index)) own_.push_back(stepped_[index]);
  if (numerics.scales_loss())
    scaler_.emplace(numerics.loss_scale);
  else if (numerics.skips_steps())
    skipped_steps_ = tensor::zeros({}, dtype::i64);
}

void step_gradients::accumulated() {
  tied_.combine_own();
  if (shards_) shards_->take_gradients();
}

void step_gradients::share_memory(const program::stage_program::memory_source& shared) {
  if (shards_ && shards_->frees_gradients()) return take_gradients_from(shared);
  if (has_shared_memory_ || !shared) return;
  std::vector<parameter*> sent;
  for (std::size_t index = 0; index < stepped_.size(); ++index)
    if (compressed_.sends_in_place(index)) {
      auto* target = shards_ ? &shards_->whole_of(index) : stepped_[index];
      if (std::ranges::find(sent, target) == sent.end()) sent.push_back(target);
    }
  // Views, which would keep the old memory; the next step's gradients bring new ones.
  if (shards_)
    for (auto* each : stepped_) each->gradient_in_update() = {};
  share_memory_of(sent, shared);
  has_shared_memory_ = true;
}

/// Of those with a piece that is sent from where it lies.
void step_gradients::take_gradients_from(const program::stage_program::memory_source& shared) {
  for (std::size_t index = 0; index < stepped_.size(); ++index)
    shards_->whole_of(index).gradient_source = nullptr;
  if (!shared) return;
  for (std::size_t index = 0; index < stepped_.size(); ++index)
    if (auto& whole = shards_->whole_of(index);
        compressed_.sends_in_place(index) && whole.place() == device{})
      whole.gradient_source = [shared](shape extents) { return shared(std::move(extents), dtype::f32); };
}

tensor step_gradients::partial_for_reduction(int reduction) {
  if (reduction == reductions_.tied) return tied_.partial_gradients();
  if (reduction == reductions_.norms) return optim::detail::gradient_squares(counted_);
  throw std::logic_error("[module_program::partial_for_reduction] expected one of " +
                         std::to_string(reductions_.all.size()) + " reductions, got number " +
                         std::to_string(reduction));
}

void step_gradients::reduce(int reduction, const std::vector<tensor>& partials) {
  if (reduction == reductions_.tied) {
    tied_.combine(partials);
    if (shards_) shards_->take_gradients();
  } else {
    use_norm(optim::detail::combined_norm(partials));
  }
  reduced_.insert(reduction);
}

void step_gradients::give_buckets_of(const parameter& whose, std::int64_t num_elements,
                                     const std::function<void(int bucket)>& on_bucket) {
  if (tied_.is_use(whose)) return;
  if (!shards_) return give_buckets_until(whose, num_elements, on_bucket);
  shards_->take_gradient(whose);
  auto [first, end] = shards_->pieces_of(whose);
  for (auto piece = first; piece < end; ++piece)
    give_buckets_until(*shards_->sent()[piece].target, num_elements - shards_->first_of(piece), on_bucket);
}

void step_gradients::give_buckets_until(const parameter& stepped, std::int64_t num_elements,
                                        const std::function<void(int bucket)>& on_bucket) {
  const auto& buckets = compressed_.buckets();
  auto [first, count] = buckets.buckets_of(stepped);
  if (count == 0) return;
  for (auto& given = exchanged_[buckets.part_of(first).index].num_given; given < count; ++given) {
    const auto& part = buckets.part_of(first + given);
    if (part.first + part.count > num_elements) return;
    on_bucket(first + given);
  }
}

tensor step_gradients::message_of(int bucket) {
  auto message = compressed_.message_of(bucket);
  const auto& buckets = compressed_.buckets();
  if (!shards_) return message;
  // Copies, in memory of their own.
  if (buckets.is_packed(bucket))
    for (auto index : buckets.packed(bucket)) note_piece_read(index);
  else if (auto index = buckets.part_of(bucket).index; !compressed_.sends_in_place(index))
    note_piece_read(index);
  return message;
}

void step_gradients::take_sums(int bucket, const std::vector<tensor>& sums, const part_stepper& step_part) {
  const auto& buckets = compressed_.buckets();
  auto parts = compressed_.sums_from(bucket, sums);
  if (parts.empty()) return;
  if (buckets.is_packed(bucket)) {
    buckets.set_elements(bucket, parts, stepped_);
    for (std::size_t i = 0; i < stepped_.size(); ++i)  // the bucket tells of all that they have a gradient
      if (exchanged_[i].is_whole) stepped_[i]->has_gradient = false;
    has_packed_ = true;
  } else if (step_part && compressed_.had_gradient(buckets.part_of(bucket).index)) {
    step(buckets.part_of(bucket), parts, step_part);
  } else {
    buckets.set_elements(bucket, parts, stepped_);
  }
}

void step_gradients::note_read(int bucket) {
  const auto& buckets = compressed_.buckets();
  if (buckets.is_packed(bucket)) return;
  if (auto index = buckets.part_of(bucket).index; compressed_.sends_in_place(index)) note_piece_read(index);
}

/// Nobody reads a bucket's elements of piece `index` any more.
void step_gradients::note_piece_read(std::size_t index) {
  if (!shards_->frees_gradients()) return;
  ++exchanged_[index].num_read;
  auto& whole = shards_->whole_of(index);
  auto [first, end] = shards_->pieces_of(whole);
  for (auto piece = first; piece < end; ++piece)
    if (exchanged_[piece].num_read <
        std::max(compressed_.buckets().buckets_of(*shards_->sent()[piece].target).second, 1))
      return;
  shards_->free_gradient(whole);
}

/// `which`: the elements that `parts` are the gradient of, one after the other.
void step_gradients::step(optim::parameter_part which, const std::vector<tensor>& parts,
                          const part_stepper& step_part) {
  auto& found = exchanged_[which.index];
  auto place = stepped_[which.index]->value_in_update().device();
  for (const auto& part : parts) {
    which.count = part.num_elements();
    if (numerics_.on_non_finite != non_finite_policy::go_on && found.is_finite)
      found.is_finite = all_finite(std::span(&part, 1));
    step_part.step(which, async_device_copy(part, place));
    which.first += which.count;
    found.num_stepped += which.count;
  }
  auto& target = *stepped_[which.index];
  found.is_whole = found.num_stepped == target.extents.num_elements();
  if (!found.is_whole) return;
  step_part.end(which.index);
  target.mark_stepped_with_converted();
  tied_.mark_stepped(target);
}

void step_gradients::step_packed(const part_stepper& step_part) {
  if (!has_packed_) return;
  for (auto index : compressed_.buckets().packed(shards_ ? shards_->own_index() : 0))
    if (auto& each = *stepped_[index]; each.needs_step())
      step({index, 0, each.extents.num_elements()}, {in_a_row(each.gradient_in_update())}, step_part);
}

/// Applies loss scale and clipping in one pass over the gradients, if necessary. No element is larger than
/// the norm: if that stays finite, all do, and every stage takes the same decision.
void step_gradients::use_norm(double norm) {
  auto scale = loss_scale();
  auto clip = numerics_.clip_grad_norm > 0 ? clipping_factor(norm / scale, numerics_.clip_grad_norm) : 1;
  auto factor = clip / scale;
  is_finite_ = std::isfinite(norm) && norm * factor <= std::numeric_limits<float>::max();
  if (!is_finite_ && numerics_.skips_steps()) {
    non_finite_ = std::isfinite(norm) ? first_with_gradient() : find_non_finite();
    return optim::drop_gradients(own_);
  }
  if (factor != 1) scale_all(optim::detail::gradients_of(own_), factor);
}

const parameter* step_gradients::first_with_gradient() const {
  auto found = std::ranges::find_if(own_, &parameter::needs_step);
  return found == own_.end() ? nullptr : *found;
}

/// All gradients are looked at together first, so that a GPU is waited for once.
const parameter* step_gradients::find_non_finite() const {
  std::vector<tensor> not_stepped;
  for (std::size_t index = 0; index < stepped_.size(); ++index)
    if (is_own(index) && exchanged_[index].num_stepped == 0 && stepped_[index]->needs_step())
      not_stepped.push_back(stepped_[index]->gradient_in_update());
  if (std::ranges::all_of(exchanged_, &exchanged::is_finite) && all_finite(not_stepped)) return nullptr;
  auto is_finite = [this](std::size_t index) {
    const auto& found = exchanged_[index];
    auto* each = stepped_[index];
    if (!is_own(index)) return true;
    if (found.num_stepped > 0) return found.is_finite;
    return !each->needs_step() || all_finite(std::span(&each->gradient_in_update(), 1));
  };
  for (std::size_t index = 0; index < stepped_.size(); ++index)
    if (!is_finite(index)) return stepped_[index];
  return nullptr;
}

const parameter* step_gradients::first_non_finite() const {
  // Steps that are skipped while loss scaling finds its scale are normal and are not reported.
  bool is_scale_sought = scaler_ && !scaler_->is_least();
  if (is_scale_sought || numerics_.on_non_finite == non_finite_policy::go_on) return nullptr;
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
  if (shards_) shards_->mark_stepped();
  discard();
}

void step_gradients::discard() {
  tied_.mark_stepped();
  if (shards_) {
    for (auto* each : stepped_) each->has_gradient = false;
    if (shards_->frees_gradients()) {
      shards_->free_gradients();
      tied_.detach_gradients();
    }
  }
  reduced_.clear();
  compressed_.end_step();
  std::ranges::fill(exchanged_, exchanged{});
  has_packed_ = false;
  is_finite_ = true;
  non_finite_ = nullptr;
}

std::vector<named_tensor> step_gradients::state() const {
  auto result = compressed_.state();
  if (scaler_) std::ranges::move(scaler_->state(), std::back_inserter(result));
  if (skipped_steps_.defined()) result.push_back({"skipped_steps", skipped_steps_});
  return result;
}

}  // namespace troupe::detail
