#include "troupe/optim/moment_state.hpp"

#include <string>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/tensor/memory.hpp"

namespace troupe::optim {

moment_state::moment_state(step_function how, lr_schedule schedule, std::vector<named_parameter> parameters)
    : how_(std::move(how)), schedule_(std::move(schedule)), parameters_(std::move(parameters)) {
  memory_scope counted(memory_category::optimizer);
  for (const auto& each : parameters_) {
    const auto& value = each.target->value;
    exp_avg_.push_back(tensor::zeros(value.extents(), dtype::f32, value.where()));
    exp_avg_sq_.push_back(tensor::zeros(value.extents(), dtype::f32, value.where()));
  }
}

void moment_state::apply(std::uint64_t step) {
  slots_.clear();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& each = *parameters_[i].target;
    if (each.is_to_step())
      slots_.push_back({each.value, each.gradient, exp_avg_[i], exp_avg_sq_[i], each.converted()});
  }
  how_(slots_, step, schedule_ ? schedule_(step) : 1);
  slots_.clear();
  for (const auto& each : parameters_)
    if (each.target->is_to_step()) each.target->stepped_with_converted();
}

std::vector<named_tensor> moment_state::state() const {
  std::vector<named_tensor> result;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    result.push_back({parameters_[i].name + "/exp_avg", exp_avg_[i]});
    result.push_back({parameters_[i].name + "/exp_avg_sq", exp_avg_sq_[i]});
  }
  return result;
}

void require_option(const char* where, bool is_good, const char* expected, double got) {
  if (!is_good) throw_invalid(where, expected, std::to_string(got));
}

}  // namespace troupe::optim
