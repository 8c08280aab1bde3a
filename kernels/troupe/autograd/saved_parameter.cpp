#include "troupe/autograd/saved_parameter.hpp"

#include <stdexcept>

namespace troupe {

std::uint64_t saved_parameter::ready_version(const parameter* param) {
  if (!param) return 0;
  param->wait_update();
  return param->version();
}

tensor saved_parameter::value() const {
  if (!target_) return {};
  require_ready();
  if (!target_->value().defined()) throw_detached();
  return target_->value();
}

const tensor& saved_parameter::as(dtype type) const {
  require_ready();
  return target_->as(type);
}

void saved_parameter::require_ready() const {
  target_->wait_ready();
  require_unchanged();
  if (!target_->is_attached()) throw_detached();
}

void saved_parameter::throw_detached() const {
  throw std::logic_error("[backward] expected the parameter " + target_->name + to_string(target_->extents) +
                         " with elements, got one that is detached: attach it before backward");
}

void saved_parameter::throw_changed() const {
  throw std::logic_error("[backward] expected the parameter " + target_->name + to_string(target_->extents) +
                         " as it was in forward, got one that was written to " +
                         std::to_string(target_->version() - version_) +
                         " times since; run backward before the optimizer's step, or forward again");
}

}  // namespace troupe
