#include "troupe/autograd/captured_pass.hpp"

#include <stdexcept>
#include <utility>

namespace troupe {

captured_pass::captured_pass(device where, std::function<void()> work, std::vector<parameter*> parameters)
    : step_(where, std::move(work)), parameters_(std::move(parameters)) {}

void captured_pass::run() {
  for (const auto* each : parameters_)
    if (each->has_gradient)
      throw std::logic_error("[captured_pass] expected parameters without gradients, got one of \"" +
                             each->name + "\": step the optimizer, or drop the gradients, before each run");
  step_.run();
  if (reached_.empty())
    for (auto* each : parameters_)
      if (each->has_gradient) reached_.push_back(each);
  for (auto* each : reached_) each->has_gradient = true;  // a replay does not know parameters
}

}  // namespace troupe
