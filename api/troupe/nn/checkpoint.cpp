#include "troupe/nn/checkpoint.hpp"

#include "troupe/autograd/checkpoint.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::nn {

Checkpoint::Checkpoint(std::shared_ptr<Module> of) : module_(std::move(of)) {
  if (!module_) throw_invalid("Checkpoint", "a module", "a null pointer");
}

Checkpoint::Checkpoint(const Checkpoint& other) : module_of(other), module_(other.module_->clone()) {}

Checkpoint& Checkpoint::operator=(Checkpoint other) noexcept {
  module_of::operator=(other);
  module_ = std::move(other.module_);
  return *this;
}

variable Checkpoint::forward(const variable& input) {
  return checkpoint([of = module_](const variable& x) { return (*of)(x); }, input);
}

}  // namespace troupe::nn
