#include "troupe/optim/detail/moment_state.hpp"

#include <map>
#include <string>
#include <utility>

#include "troupe/contents/step_counts.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/tensor/memory.hpp"

namespace troupe::optim::detail {

moment_state::moment_state(step_function step_all, update_kind kind, lr_schedule schedule,
                           std::vector<named_parameter> parameters)
    : step_(std::move(step_all)),
      kind_(kind),
      schedule_(std::move(schedule)),
      parameters_(std::move(parameters)) {
  if (parameters_.empty()) return;
  // Not counted as optimizer memory, which is predicted layer by layer: one block of 8 bytes a parameter.
  num_steps_ = tensor::zeros({static_cast<std::int64_t>(parameters_.size())}, dtype::i64);
  memory_scope counted(memory_category::optimizer);
  for (const auto& each : parameters_) {
    const auto& value = each.target->value_in_update();
    exp_avg_.push_back(tensor::zeros(value.shape(), dtype::f32, value.device()));
    exp_avg_sq_.push_back(tensor::zeros(value.shape(), dtype::f32, value.device()));
  }
}

/// Parameters that had equally many steps, as a rule all, are stepped in one pass.
void moment_state::apply(std::uint64_t step) {
  for (const auto& each : parameters_) each.target->wait_ready();
  std::map<std::uint64_t, std::vector<adam_slot>> slots;
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (parameters_[i].target->needs_step()) slots[num_steps(i, step)].push_back(slot_of(i));
  for (const auto& [steps, those] : slots) step_(those, steps, rate_factor(step));
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].target->needs_step()) continue;
    end_parts(step, i);
    parameters_[i].target->mark_stepped_with_converted();
  }
}

void moment_state::apply_part(std::uint64_t step, const parameter_part& part, const tensor& gradient) {
  if (!is_elementwise()) return optimizer_state::apply_part(step, part, gradient);
  auto all = slot_of(part.index);
  const adam_slot slot{elements_of(all.weight, part), gradient, elements_of(all.exp_avg, part),
                       elements_of(all.exp_avg_sq, part), elements_of(all.low_precision, part)};
  step_(std::span(&slot, 1), num_steps(part.index, step), rate_factor(step));
}

void moment_state::end_parts(std::uint64_t step, std::size_t index) {
  num_steps_.values<std::int64_t>()[index] = static_cast<std::int64_t>(num_steps(index, step) + 1);
}

std::uint64_t moment_state::num_steps(std::size_t index, std::uint64_t step) const {
  auto counted = num_steps_.values<std::int64_t>()[index];
  return counted == unknown_steps ? step : static_cast<std::uint64_t>(counted);
}

adam_slot moment_state::slot_of(std::size_t index) const {
  auto& param = *parameters_[index].target;
  return {param.value_in_update(), param.gradient_in_update(), exp_avg_[index], exp_avg_sq_[index],
          param.converted()};
}

std::vector<named_tensor> moment_state::state() const {
  std::vector<named_tensor> result;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    result.push_back({parameters_[i].name + "/exp_avg", exp_avg_[i]});
    result.push_back({parameters_[i].name + "/exp_avg_sq", exp_avg_sq_[i]});
    result.push_back({parameters_[i].name + std::string(steps_suffix),
                      num_steps_.rows(static_cast<std::int64_t>(i), 1).reshape({})});
  }
  return result;
}

void require_option(const char* function, bool is_good, const char* expected, double got) {
  if (!is_good) throw_invalid(function, expected, std::to_string(got));
}

}  // namespace troupe::optim::detail
