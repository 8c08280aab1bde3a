// module_program: what becomes of gradients in an optimizer step, and the state.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "troupe/ops/copy_by_name.hpp"
#include "troupe/pipeline/detail/module_program.hpp"

namespace troupe::detail {

/// Over slices it has nothing.
int module_program::num_buckets(layout::mesh_axis axis, std::uint64_t step) {
  if (axis != layout::mesh_axis::dp) return stage_program::num_buckets(axis, step);
  if (!average_) return gradients_->num_buckets();
  return average_->is_due(step) ? average_->num_buckets() : 0;
}

tensor module_program::bucket(layout::mesh_axis axis, int number) {
  if (axis != layout::mesh_axis::dp) return stage_program::bucket(axis, number);
  return average_ ? average_->values_of(number) : gradients_->message_of(number);
}

std::optional<int> module_program::owner_of(layout::mesh_axis axis, int number) {
  return axis == layout::mesh_axis::dp && shards_ ? gradients_->owner_of(number) : std::nullopt;
}

std::vector<program::stage_program::weight_bucket> module_program::weight_buckets() {
  return shards_ ? shards_->weight_buckets() : std::vector<weight_bucket>();
}

/// Forwards wait for what is trained alone, and the first one tells whether all modules wait.
bool module_program::defer_gather(const std::vector<int>& missing, const progress_callback& progress) {
  auto is_stepped = [&](int bucket) { return shards_->is_stepped(bucket); };
  if (!is_checked_ || !std::ranges::all_of(missing, is_stepped)) return false;
  shards_->begin_gather(missing);
  deferred_->begin(progress);
  return true;
}

void module_program::share_gradients(const memory_source& shared) {
  if (!average_) gradients_->share_memory(shared);
}

void module_program::note_read(layout::mesh_axis axis, int number) {
  if (axis == layout::mesh_axis::dp && shards_) gradients_->note_read(number);
}

/// Where a parameter's step needs nothing but its own gradient, it is stepped while the gradients of others
/// travel.
void module_program::take_sums(layout::mesh_axis axis, int number, const std::vector<tensor>& parts) {
  if (axis != layout::mesh_axis::dp) return stage_program::take_sums(axis, number, parts);
  if (average_) {
    average_->take_sums(number, parts, num_replicas_);
    return gradients_->mark_changed();
  }
  gradients_->take_sums(number, parts, part_stepper());
  if (deferred_->is_pending()) gradients_->step_packed(part_stepper());
}

/// Whether a parameter's step needs nothing but its own gradient.
bool module_program::steps_by_parts() const {
  return !average_ && !versions_ && optimizer_->is_elementwise() && gradients_->may_step_early();
}

/// Null unless steps_by_parts.
step_gradients::part_stepper module_program::part_stepper() {
  if (!steps_by_parts()) return {};
  auto step = *gradients_->optimizer_step(accumulated_step_);
  auto index_of = [this](std::size_t index) { return shards_ ? shards_->index_in_owned(index) : index; };
  return {[this, step, index_of](optim::parameter_part which, const tensor& gradient) {
            which.index = index_of(which.index);
            optimizer_->apply_part(step, which, gradient);
          },
          [this, step, index_of](std::size_t index) { optimizer_->end_parts(step, index_of(index)); }};
}

bool module_program::defer_update(const progress_callback& progress) {
  auto step_part = part_stepper();
  if (!step_part || shards_) return false;
  deferred_->begin(progress);
  has_finite_loss_ = is_loss_finite();
  gradients_->step_packed(step_part);
  return true;
}

bool module_program::is_loss_finite() {
  read_deferred();
  return has_taken_finite_loss_ && std::isfinite(metrics_.loss_sum);
}

std::string module_program::non_finite() {
  read_deferred();
  if (!looks_for_non_finite_) return {};
  if (deferred_->is_pending() ? !has_finite_loss_ : !is_loss_finite()) return "the loss";
  const auto* found = gradients_->first_non_finite();
  if (!found) return {};
  const auto& stepped = shards_ ? shards_->pieces() : parameters_;
  return "the gradient of " + std::ranges::find(stepped, found, &named_parameter::target)->name;
}

void module_program::keep_buffers() {
  for (std::size_t i = 0; i < kept_buffers_.size(); ++i)
    kept_buffers_[i].copy_from(buffers_[i].target->value);
}

/// A value that is not finite would stay in a running mean for good.
void module_program::restore_buffers() {
  for (std::size_t i = 0; i < kept_buffers_.size(); ++i)
    buffers_[i].target->value.copy_from(kept_buffers_[i]);
}

void module_program::apply(std::uint64_t step) {
  deferred_->end();
  read_deferred();
  if (!passes_.empty() && passes_.begin()->first.first <= step)
    throw std::logic_error("[module_program::apply] microbatch " +
                           std::to_string(passes_.begin()->first.second) + " of step " +
                           std::to_string(step) + " is still in flight");
  bool is_flush = (step + 1) % flush_every_ == 0;
  if (!is_flush) versions_->begin_update();
  if (auto counted = gradients_->optimizer_step(step)) {
    optimizer_->apply(*counted);
    keep_buffers();
  } else {
    restore_buffers();
  }
  gradients_->mark_stepped();
  if (versions_) is_flush ? versions_->reset() : versions_->end_update(step);
  last_accumulated_ = -1;
  has_taken_finite_loss_ = true;
}

void module_program::discard() {
  passes_.clear();
  last_accumulated_ = -1;
  on_bucket_ = nullptr;
  deferred_->end();
  metrics_ = {};
  reads_.clear();
  deferred_losses_.clear();
  has_taken_finite_loss_ = true;
  counted_targets_.discard();
  for (const auto& each : parameters_) each.target->has_gradient = false;
  gradients_->discard();
  if (shards_) shards_->release_values();
}

/// Where the program makes the steps itself, or a job pauses, the loss of a step is taken before its apply,
/// which has to know of it.
program::step_metrics module_program::take_metrics() {
  read_deferred();
  if (last_accumulated_ >= 0 || !passes_.empty()) has_taken_finite_loss_ = is_loss_finite();
  return std::exchange(metrics_, {});
}

std::vector<named_tensor> module_program::parameters() {
  std::vector<named_tensor> result;
  for (const auto& each : stepped())
    if (!borrowed_.contains(each.name)) result.push_back({each.name, each.target->value()});
  return result;
}

std::vector<named_tensor> module_program::weights() {
  auto result = parameters();
  for (const auto& each : buffers_) result.push_back({each.name, each.target->value});
  return result;
}

std::vector<named_tensor> module_program::state() {
  std::vector<named_tensor> result;
  for (const auto& each : stepped()) result.push_back({each.name, each.target->value()});
  for (const auto& each : buffers_) result.push_back({each.name, each.target->value});
  auto kept = optimizer_->state();
  std::ranges::sort(kept, {}, &named_tensor::name);
  std::ranges::move(kept, std::back_inserter(result));
  std::ranges::move(gradients_->state(), std::back_inserter(result));
  return result;
}

std::vector<tensor_contents> module_program::contents() {
  std::vector<tensor_contents> result;
  for (const auto& each : state()) {
    auto of_piece = shards_ ? shards_->contents_of(each) : std::nullopt;
    result.push_back(of_piece ? *of_piece : whole_contents(each));
  }
  return result;
}

void module_program::load_state(const std::vector<named_tensor>& saved) {
  copy_by_name(state(), saved);
  if (versions_) versions_->reset();
  for (const auto& each : parameters_) each.target->mark_changed();
  gradients_->mark_changed();
  keep_buffers();
}

}  // namespace troupe::detail
