#include "troupe/autograd/tape.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/ops/elementwise.hpp"

namespace troupe {

variable tape::start(tensor input, input_gradient wanted) {
  if (phase_ != phase::empty) throw std::logic_error("[tape::start] expected an empty tape, got one in use");
  phase_ = phase::recording;
  nodes_.push_back({nullptr, {}, wanted == input_gradient::wanted, {}});
  return {std::move(input), this, 0};
}

variable tape::record(tensor value, const std::vector<variable>& inputs,
                      std::unique_ptr<operation> recorded) {
  if (phase_ != phase::recording)
    throw std::logic_error("[tape::record] expected a started tape that did not run back");
  node added{std::move(recorded), {}, false, {}};
  added.needs_gradient = added.recorded->has_parameters();
  for (const auto& input : inputs) {
    if (input.recorder != this || input.node < 0 || input.node >= static_cast<int>(nodes_.size()))
      throw_invalid("tape::record", "inputs recorded on this tape", "node " + std::to_string(input.node));
    added.inputs.push_back(input.node);
    added.needs_gradient |= needs_gradient(input);
  }
  nodes_.push_back(std::move(added));
  return {std::move(value), this, static_cast<int>(nodes_.size()) - 1};
}

bool tape::needs_gradient(const variable& value) const {
  return nodes_.at(static_cast<std::size_t>(value.node)).needs_gradient;
}

tensor tape::backward_input(tensor output_gradient) {
  auto result = run_backward(std::move(output_gradient), weights::later);
  phase_ = phase::input_gradients_done;
  return result;
}

void tape::backward_weight() {
  if (phase_ != phase::input_gradients_done)
    throw std::logic_error("[tape::backward_weight] expected a call after backward_input");
  for (; !nodes_.empty(); nodes_.pop_back())
    if (nodes_.back().recorded) nodes_.back().recorded->backward_weight();
  reset();
}

tensor tape::backward(tensor output_gradient) {
  auto result = run_backward(std::move(output_gradient), weights::at_once);
  reset();
  return result;
}

void tape::reset() {
  nodes_.clear();
  phase_ = phase::empty;
}

tensor tape::run_backward(tensor output_gradient, weights when) {
  if (phase_ != phase::recording)
    throw std::logic_error("[tape::backward_input] expected a started tape that did not run back");
  nodes_.back().gradient = std::move(output_gradient);
  for (auto index = nodes_.size() - 1; index > 0; --index) {
    auto& at = nodes_[index];
    if (at.needs_gradient) {
      pass_on(at, std::exchange(at.gradient, {}));
      if (when == weights::at_once) at.recorded->backward_weight();
    }
    if (when == weights::at_once || !at.needs_gradient || !at.recorded->has_parameters()) at.recorded.reset();
  }
  return nodes_.front().needs_gradient ? std::exchange(nodes_.front().gradient, {}) : tensor();
}

void tape::pass_on(node& from, tensor gradient) {
  auto gradients = from.recorded->backward_input(std::move(gradient));
  for (std::size_t i = 0; i < from.inputs.size(); ++i) {
    auto& input = nodes_[static_cast<std::size_t>(from.inputs[i])];
    if (!input.needs_gradient) continue;
    input.gradient = input.gradient.defined() ? add(input.gradient, gradients.at(i)) : gradients.at(i);
  }
}

}  // namespace troupe
