#include "troupe/autograd/captured_pass.hpp"

#include <stdexcept>
#include <utility>

namespace troupe {

captured_pass::captured_pass(device where, std::function<void()> work, std::vector<parameter*> parameters)
    : step_(where, std::move(work)), parameters_(std::move(parameters)) {}

void captured_pass::run() {
  for (const auto* each : parameters_) each->wait_ready();
  require_no_gradients();
  if (step_.is_recorded()) require_same_memory();
  run_step();
  if (reached_.empty())
    for (auto* each : parameters_)
      if (each->has_gradient) reached_.push_back(each);
  for (auto* each : reached_) each->has_gradient = true;  // a replay does not know parameters
  if (step_.is_recorded() && recorded_.empty())
    for (const auto* each : parameters_) recorded_.push_back(memory_of(*each));
}

/// What a failed recording has left was never computed: gradients, and values in another dtype.
void captured_pass::run_step() {
  try {
    step_.run();
  } catch (...) {
    for (auto* each : parameters_) {
      each->has_gradient = false;
      each->changed();
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
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (memory_of(*parameters_[i]) != recorded_[i])
      throw std::logic_error(
          "[captured_pass] expected \"" + parameters_[i]->name +
          "\" and its gradient where they were when the pass was recorded, got other "
          "memory: make a new captured_pass after the model has moved or was wrapped, and one "
          "for each of a DataParallel's replicas (replicas_per_rank)");
}

captured_pass::memory_places captured_pass::memory_of(const parameter& which) {
  auto place_of = [](const tensor& x) { return x.defined() ? x.bytes().data() : nullptr; };
  return {place_of(which.value()), place_of(which.gradient())};
}

}  // namespace troupe
