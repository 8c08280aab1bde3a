#include "troupe/optim/sgd.hpp"

#include <cmath>
#include <utility>

#include "troupe/ops/sgd_step.hpp"
#include "troupe/optim/detail/gradients_of.hpp"
#include "troupe/optim/detail/moment_state.hpp"
#include "troupe/optim/parameter_part.hpp"
#include "troupe/tensor/memory.hpp"

namespace troupe::optim {
namespace {

class sgd_state : public optimizer_state {
 public:
  sgd_state(const sgd_options& options, std::vector<named_parameter> parameters)
      : options_{options.lr, options.momentum, options.weight_decay, options.nesterov},
        schedule_(options.schedule),
        parameters_(std::move(parameters)) {
    memory_scope counted(memory_category::optimizer);
    for (const auto& each : parameters_) {
      const auto& value = each.target->value_in_update();
      buffers_.push_back(options.momentum == 0 ? tensor()
                                               : tensor::zeros(value.shape(), dtype::f32, value.device()));
    }
  }

  void apply(std::uint64_t step) override {
    for (const auto& each : parameters_) each.target->wait_ready();
    slots_.clear();
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      if (parameters_[i].target->needs_step()) slots_.push_back(slot_of(i));
    step_slots(step);
    for (const auto& each : parameters_)
      if (each.target->needs_step()) each.target->mark_stepped_with_converted();
  }

  void zero_grad() override { detail::drop_gradients(parameters_); }

  bool is_elementwise() const override { return true; }
  void apply_part(std::uint64_t step, const parameter_part& part, const tensor& gradient) override {
    auto all = slot_of(part.index);
    slots_.assign(1, {elements_of(all.weight, part), gradient, elements_of(all.momentum_buffer, part),
                      elements_of(all.low_precision, part)});
    step_slots(step);
  }

  std::vector<named_tensor> state() const override {
    std::vector<named_tensor> result;
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      if (buffers_[i].defined()) result.push_back({parameters_[i].name + "/momentum_buffer", buffers_[i]});
    return result;
  }

 private:
  sgd_slot slot_of(std::size_t index) const {
    auto& param = *parameters_[index].target;
    return {param.value_in_update(), param.gradient_in_update(), buffers_[index], param.converted()};
  }
  void step_slots(std::uint64_t step) {
    auto options = options_;
    if (schedule_) options.learning_rate *= schedule_(step);
    sgd_step(slots_, options);
    slots_.clear();
  }

  sgd_step_options options_;
  lr_schedule schedule_;
  std::vector<named_parameter> parameters_;
  std::vector<tensor> buffers_;
  std::vector<sgd_slot> slots_;  ///< of the step at hand
};

}  // namespace

SGD::SGD(sgd_options options) : options_(options) {
  detail::require_option("SGD", options.lr >= 0 && std::isfinite(options.lr), "a finite lr >= 0", options.lr);
  detail::require_option("SGD", options.momentum >= 0 && options.momentum <= 1, "momentum in [0, 1]",
                         options.momentum);
  detail::require_option("SGD", options.weight_decay >= 0, "weight_decay >= 0", options.weight_decay);
  detail::require_option("SGD", !options.nesterov || options.momentum > 0, "momentum > 0 with nesterov",
                         options.momentum);
}

std::unique_ptr<optimizer_state> SGD::operator()(std::vector<named_parameter> parameters) const {
  return std::make_unique<sgd_state>(options_, std::move(parameters));
}

}  // namespace troupe::optim
