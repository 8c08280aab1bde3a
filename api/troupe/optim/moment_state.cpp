#include "troupe/optim/moment_state.hpp"

#include <string>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/tensor/memory.hpp"

namespace troupe::optim {

moment_state::moment_state(step_function step_all, update_kind kind, lr_schedule schedule,
                           std::vector<named_parameter> parameters)
    : step_(std::move(step_all)),
      kind_(kind),
      schedule_(std::move(schedule)),
      parameters_(std::move(parameters)) {
  memory_scope counted(memory_category::optimizer);
  for (const auto& each : parameters_) {
    const auto& value = each.target->value_in_update();
    exp_avg_.push_back(tensor::zeros(value.shape(), dtype::f32, value.device()));
    exp_avg_sq_.push_back(tensor::zeros(value.shape(), dtype::f32, value.device()));
  }
}

void moment_state::apply(std::uint64_t step) {
  for (const auto& each : parameters_) each.target->wait_ready();
  slots_.clear();
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (parameters_[i].target->needs_step()) slots_.push_back(slot_of(i));
  step_slots(step);
  for (const auto& each : parameters_)
    if (each.target->needs_step()) each.target->mark_stepped_with_converted();
}

void moment_state::apply_part(std::uint64_t step, const parameter_part& part, const tensor& gradient) {
  if (!is_elementwise()) return optimizer_state::apply_part(step, part, gradient);
  auto all = slot_of(part.index);
  slots_.assign(1, {elements_of(all.weight, part), gradient, elements_of(all.exp_avg, part),
                    elements_of(all.exp_avg_sq, part), elements_of(all.low_precision, part)});
  step_slots(step);
}

adam_slot moment_state::slot_of(std::size_t index) const {
  auto& param = *parameters_[index].target;
  return {param.value_in_update(), param.gradient_in_update(), exp_avg_[index], exp_avg_sq_[index],
          param.converted()};
}

void moment_state::step_slots(std::uint64_t step) {
  step_(slots_, step, schedule_ ? schedule_(step) : 1);
  slots_.clear();
}

std::vector<named_tensor> moment_state::state() const {
  std::vector<named_tensor> result;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    result.push_back({parameters_[i].name + "/exp_avg", exp_avg_[i]});
    result.push_back({parameters_[i].name + "/exp_avg_sq", exp_avg_sq_[i]});
  }
  return result;
}

void require_option(const char* function, bool is_good, const char* expected, double got) {
  if (!is_good) throw_invalid(function, expected, std::to_string(got));
}

}  // namespace troupe::optim
