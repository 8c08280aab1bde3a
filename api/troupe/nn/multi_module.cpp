#include "troupe/nn/multi_module.hpp"

#include <stdexcept>
#include <string>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/nn/detail/layer_error.hpp"

namespace troupe::nn {
namespace {

bool takes(int number, std::size_t given) {
  return number == MultiModule::any_number ? given > 0 : std::cmp_equal(number, given);
}

}  // namespace

std::vector<variable> MultiModule::operator()(const std::vector<variable>& inputs) {
  try {
    if (!takes(num_inputs(), inputs.size()))
      throw_invalid(
          "MultiModule",
          num_inputs() == any_number ? "at least one input" : std::to_string(num_inputs()) + " inputs",
          std::to_string(inputs.size()));
    auto outputs = forward_all(inputs);
    if (std::cmp_not_equal(outputs.size(), num_outputs()))
      throw std::logic_error("[MultiModule] expected " + std::to_string(num_outputs()) +
                             " outputs of forward_all, as num_outputs says, got " +
                             std::to_string(outputs.size()));
    return outputs;
  } catch (...) {
    detail::rethrow_in_layer(path());
  }
}

variable MultiModule::forward(const variable& input) {
  if (!takes(num_inputs(), 1) || num_outputs() != 1)
    throw std::logic_error("[MultiModule] expected a module with one input and one output, got one with " +
                           (num_inputs() == any_number ? "several" : std::to_string(num_inputs())) + " and " +
                           std::to_string(num_outputs()) + ": make it a node of an nn::Graph");
  return (*this)(std::vector{input}).front();
}

int num_inputs_of(const Module& module) {
  const auto* several = dynamic_cast<const MultiModule*>(&module);
  return several ? several->num_inputs() : 1;
}

int num_outputs_of(const Module& module) {
  const auto* several = dynamic_cast<const MultiModule*>(&module);
  return several ? several->num_outputs() : 1;
}

}  // namespace troupe::nn
