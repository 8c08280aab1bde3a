#include "troupe/autograd/parameter.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "troupe/error/errors.hpp"
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
      has_gradient(ready(other).has_gradient && other.gradient_.defined()),
      tied_to(other.tied_to),
      requires_gradient(other.requires_gradient),
      value_(copy_for(memory_category::parameters, other.value())),
      gradient_(copy_for(memory_category::gradients, other.gradient())) {
  if (!value_.defined()) converted_ = copy_for(memory_category::parameters, other.converted_);
}

parameter& parameter::operator=(const parameter& other) {
  auto version = version_;
  *this = parameter(other);
  version_ = version + 1;  // what was recorded with the elements before is out of date
  return *this;
}

namespace {

[[noreturn]] void refuse_described(const parameter& one) {
  throw std::logic_error("[forward] expected the parameter " + one.name + to_string(one.extents) +
                         " with elements, got one that is only described: call materialize(seed) on the "
                         "model first, and let each module name all its parts in each_parameter and "
                         "each_child. If it is detached, attach it");
}

}  // namespace

void make_ready(std::initializer_list<const parameter*> parameters) {
  values_read_together by_one_operation;
  for (const auto* each : parameters)
    if (each && !ready(*each).value().defined()) refuse_described(*each);
}

void make_ready_to_convert(std::initializer_list<const parameter*> parameters) {
  values_read_together by_one_operation;
  for (const auto* each : parameters)
    if (each && !ready(*each).is_attached()) refuse_described(*each);
}

void parameter::materialize(std::uint64_t seed, std::string_view full_name) {
  wait_ready();
  attach(tensor::zeros(extents));
  attach_gradient(tensor::zeros(extents));
  has_gradient = false;
  mark_changed();
  if (init) init(value_, seed, full_name);
}

void parameter::require_shape(const tensor& given) const {
  if (given.shape() != extents)
    throw_invalid("parameter::attach", name + to_string(extents), describe(given));
}

void parameter::attach(tensor value) {
  no_update_pending();
  require_shape(value);
  value_ = std::move(value);
  value_.set_memory_category(memory_category::parameters);
}

void parameter::attach_converted(tensor converted) {
  no_update_pending();
  require_shape(converted);
  converted_ = std::move(converted);
  converted_.set_memory_category(memory_category::parameters);
}

void parameter::attach_gradient(tensor gradient) {
  no_update_pending();
  require_shape(gradient);
  gradient_ = std::move(gradient);
  gradient_.set_memory_category(memory_category::gradients);
}

device parameter::place() const {
  if (value_.defined()) return value_.device();
  return converted_.defined() ? converted_.device() : detached_from_;
}

void parameter::detach() {
  no_update_pending();
  detached_from_ = place();
  value_ = {};
  converted_ = {};
}

void parameter::detach_gradient() {
  no_update_pending();
  gradient_ = {};
}

tensor& parameter::attached_gradient() {
  if (gradient_.defined()) return gradient_;
  memory_scope counted(memory_category::gradients);
  attach_gradient(gradient_source ? gradient_source(extents) : tensor::empty(extents, dtype::f32, place()));
  return gradient_;
}

void parameter::move_to(device target) {
  wait_ready();
  tensor moved_value, moved_gradient, moved_conversion;
  {
    memory_scope counted(memory_category::parameters);
    moved_value = value_.to(target);
    if (!value_.defined() && converted_.defined()) moved_conversion = converted_.to(target);
  }
  memory_scope counted(memory_category::gradients);
  moved_gradient = gradient_.to(target);
  value_ = std::move(moved_value);
  gradient_ = std::move(moved_gradient);
  mark_changed();
  converted_ = std::move(moved_conversion);
  detached_from_ = target;
}

const tensor& parameter::as(dtype type) const {
  if (value().defined() && type == value_.dtype()) return value_;
  if (converted_.defined() && converted_.dtype() == type) return converted_;
  if (!value_.defined() && converted_.defined())
    throw std::logic_error("[parameter::as] expected " + name + " in " + std::string(to_string(type)) +
                           ", got one that is attached in " + std::string(to_string(converted_.dtype())) +
                           " alone: attach its value, or compute in that");
  if (!value_.defined()) return value_;
  converted_ = cast(value_, type);
  return converted_;
}

gradient_mode begin_gradients(std::initializer_list<parameter*> parameters) {
  for (const auto* each : parameters)
    if (each) each->wait_update();  // what comes with it may change has_gradient
  auto has_gradient = [](const parameter* each) {
    return each && each->requires_gradient && each->has_gradient;
  };
  auto mode =
      std::ranges::any_of(parameters, has_gradient) ? gradient_mode::accumulate : gradient_mode::assign;
  for (auto* each : parameters) {
    if (!each || !each->requires_gradient) continue;
    auto& gradient = each->attached_gradient();
    if (mode == gradient_mode::accumulate && !each->has_gradient) gradient.fill_zero();
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
