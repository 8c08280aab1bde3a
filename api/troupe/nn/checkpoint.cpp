#include "troupe/nn/checkpoint.hpp"

#include "troupe/autograd/checkpoint.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::nn {

Checkpoint::Checkpoint(std::shared_ptr<Module> module) : module_(std::move(module)) {
  if (!module_) throw_invalid("Checkpoint", "a module", "a null pointer");
}

Checkpoint::Checkpoint(const Checkpoint& other) : module_of(other), module_(other.module_->clone()) {}

Checkpoint& Checkpoint::operator=(Checkpoint other) noexcept {
  module_of::operator=(other);
  module_ = std::move(other.module_);
  return *this;
}

variable Checkpoint::forward(const variable& input) {
  return checkpoint([module = module_](const variable& x) { return (*module)(x); }, input);
}

}  // namespace troupe::nn
