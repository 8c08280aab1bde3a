#include "troupe/nn/combine.hpp"

#include <algorithm>

#include "troupe/error/errors.hpp"

namespace troupe::nn {

std::vector<variable> Add::forward_all(const std::vector<variable>& inputs) {
  auto sum = inputs.front();
  for (std::size_t i = 1; i < inputs.size(); ++i) sum = add(sum, inputs[i]);
  return {sum};
}

std::vector<variable> Multiply::forward_all(const std::vector<variable>& inputs) {
  auto product = inputs.front();
  for (std::size_t i = 1; i < inputs.size(); ++i) product = multiply(product, inputs[i]);
  return {product};
}

std::vector<variable> Concat::forward_all(const std::vector<variable>& inputs) {
  auto type = inputs.front().value.dtype();
  auto differs = [type](const variable& each) { return each.value.dtype() != type; };
  if (std::ranges::none_of(inputs, differs)) return {concat(inputs, axis_)};
  std::vector<variable> parts;
  for (const auto& each : inputs) parts.push_back(cast(each, dtype::f32));
  return {concat(parts, axis_)};
}

Split::Split(std::vector<std::int64_t> counts, int axis) : counts_(std::move(counts)), axis_(axis) {
  if (counts_.empty()) throw_invalid("Split", "at least one part", "none");
}

std::vector<variable> Split::forward_all(const std::vector<variable>& inputs) {
  return split(inputs.front(), axis_, counts_);
}

}  // namespace troupe::nn
