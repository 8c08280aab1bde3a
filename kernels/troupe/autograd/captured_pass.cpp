#include "troupe/autograd/captured_pass.hpp"

#include <stdexcept>
#include <utility>

namespace troupe {

captured_pass::captured_pass(device target, std::function<void()> work, std::vector<parameter*> parameters)
    : step_(target, std::move(work)), parameters_(std::move(parameters)) {}

void captured_pass::run() {
  for (const auto* each : parameters_) each->wait_ready();
  require_no_gradients();
  if (step_.is_captured()) {
    require_same_memory();
    run_step();
  } else {
    capture_step();
  }
  if (reached_.empty())
    for (auto* each : parameters_)
      if (each->has_gradient) reached_.push_back(each);
  for (auto* each : reached_) each->has_gradient = true;  // a replay does not set it
}

/// A run that may capture the work. The graph reads conversions that were cached before; optimizers update
/// them with the value. Others it computes itself.
void captured_pass::capture_step() {
  std::vector<parameter_addresses> before;
  for (const auto* each : parameters_) before.push_back(addresses_of(*each));
  run_step();
  if (!step_.is_captured()) return;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    captured_.push_back(addresses_of(*parameters_[i]));
    if (captured_[i].converted != before[i].converted) captured_[i].converted = nullptr;
  }
}

/// After a failed capture the gradients and the conversions to another dtype have never been computed.
void captured_pass::run_step() {
  try {
    step_.run();
  } catch (...) {
    for (auto* each : parameters_) {
      each->has_gradient = false;
      each->mark_changed();
    }
    throw;
  }
}

void captured_pass::require_no_gradients() const {
  for (const auto* each : parameters_)
    if (each->has_gradient)
      throw std::logic_error("[captured_pass] expected parameters without gradients, got one of \"" +
                             each->name + "\": step the optimizer, or drop the gradients, before each run");
}

void captured_pass::require_same_memory() const {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    auto now = addresses_of(*parameters_[i]);
    if (captured_[i].converted != nullptr && now.converted != captured_[i].converted)
      throw std::logic_error("[captured_pass] expected \"" + parameters_[i]->name +
                             "\" changed by optimizers only, got another value, of which the captured work "
                             "has no conversion: make a new captured_pass after weights are loaded");
    now.converted = captured_[i].converted;
    if (now != captured_[i])
      throw std::logic_error(
          "[captured_pass] expected \"" + parameters_[i]->name +
          "\" and its gradient in the memory in which they were captured, got other "
          "memory: make a new captured_pass after the model has moved or was wrapped, and one "
          "for each of a DataParallel's replicas (num_replicas)");
  }
}

captured_pass::parameter_addresses captured_pass::addresses_of(const parameter& parameter) {
  auto address_of = [](const tensor& x) { return x.defined() ? x.bytes().data() : nullptr; };
  return {address_of(parameter.value()), address_of(parameter.gradient()), address_of(parameter.converted())};
}

}  // namespace troupe
