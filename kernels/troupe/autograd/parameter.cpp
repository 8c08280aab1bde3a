#include "troupe/autograd/parameter.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "troupe/ops/convert.hpp"
#include "troupe/ops/elementwise.hpp"
#include "troupe/tensor/memory.hpp"

namespace troupe {
namespace {

const parameter& ready(const parameter& one) {
  one.wait_ready();
  return one;
}

tensor copy_for(memory_category category, const tensor& x) {
  memory_scope counted(category);
  return x.clone();
}

}  // namespace

parameter::parameter(const parameter& other)
    : name(other.name),
      extents(other.extents),
      init(other.init),
      has_gradient(ready(other).has_gradient),
      tied_to(other.tied_to),
      requires_gradient(other.requires_gradient),
      value_(copy_for(memory_category::parameters, other.value())),
      gradient_(copy_for(memory_category::gradients, other.gradient())) {}

parameter& parameter::operator=(const parameter& other) {
  auto version = version_;
  *this = parameter(other);
  version_ = version + 1;  // what was recorded with the elements before is out of date
  return *this;
}

void make_ready(std::initializer_list<const parameter*> parameters) {
  for (const auto* each : parameters) {
    if (!each) continue;
    each->wait_ready();
    if (!each->value().defined())
      throw std::logic_error("[forward] expected the parameter " + each->name + to_string(each->extents) +
                             " with elements, got one that is only described: call materialize(seed) on the "
                             "model first, and let each module name all its parts in each_parameter and "
                             "each_child");
  }
}

void parameter::materialize(std::uint64_t seed, std::string_view full_name) {
  wait_ready();
  {
    memory_scope counted(memory_category::parameters);
    value_ = tensor::zeros(extents);
  }
  memory_scope counted(memory_category::gradients);
  gradient_ = tensor::zeros(extents);
  has_gradient = false;
  mark_changed();
  if (init) init(value_, seed, full_name);
}

void parameter::move_to(device target) {
  wait_ready();
  tensor moved_value, moved_gradient;
  {
    memory_scope counted(memory_category::parameters);
    moved_value = value_.to(target);
  }
  memory_scope counted(memory_category::gradients);
  moved_gradient = gradient_.to(target);
  value_ = std::move(moved_value);
  gradient_ = std::move(moved_gradient);
  mark_changed();
}

const tensor& parameter::as(dtype type) const {
  if (!value().defined() || type == value_.dtype()) return value_;
  if (!converted_.defined() || converted_.dtype() != type) converted_ = cast(value_, type);
  return converted_;
}

gradient_mode begin_gradients(std::initializer_list<parameter*> parameters) {
  for (const auto* each : parameters)
    if (each) each->wait_ready();  // what comes with it may change has_gradient
  auto has_gradient = [](const parameter* each) {
    return each && each->requires_gradient && each->has_gradient;
  };
  auto mode =
      std::ranges::any_of(parameters, has_gradient) ? gradient_mode::accumulate : gradient_mode::assign;
  for (auto* each : parameters) {
    if (!each || !each->requires_gradient) continue;
    if (mode == gradient_mode::accumulate && !each->has_gradient) each->gradient().fill_zero();
    each->has_gradient = true;
  }
  return mode;
}

tensor gradient_of(const parameter* param) {
  return param && param->requires_gradient ? param->gradient() : tensor();
}

void add_gradient(parameter& to, const tensor& part) {
  if (!to.requires_gradient) return;
  if (begin_gradients({&to}) == gradient_mode::assign)
    to.gradient().copy_from(part);
  else
    axpy(1, part, to.gradient());
}

std::vector<parameter*> trainable_parameters(std::initializer_list<parameter*> parameters) {
  std::vector<parameter*> result;
  for (auto* each : parameters)
    if (each && each->requires_gradient) result.push_back(each);
  return result;
}

}  // namespace troupe
