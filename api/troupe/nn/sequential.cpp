#include "troupe/nn/sequential.hpp"

#include <algorithm>

#include "troupe/error/errors.hpp"
#include "troupe/nn/forward_through.hpp"

namespace troupe::nn {

Sequential::Sequential(const Sequential& other) : module_of(other), names_(other.names_) {
  for (const auto& child : other.children_) children_.push_back(child->clone());
}

Sequential& Sequential::operator=(Sequential other) noexcept {
  module_of::operator=(other);
  names_ = std::move(other.names_);
  children_ = std::move(other.children_);
  return *this;
}

void Sequential::push_back(std::string name, std::shared_ptr<Module> child) {
  if (!child) throw_invalid("Sequential::push_back", "a module", "a null pointer");
  if (child->num_parameters() > 0 && std::ranges::find(children_, child) != children_.end())
    throw_invalid("Sequential::push_back", "each module with parameters once", "the same one twice");
  if (std::ranges::find(names_, name) != names_.end())
    throw_invalid("Sequential::push_back", "a name that no other child has", name);
  names_.push_back(std::move(name));
  children_.push_back(std::move(child));
}

variable Sequential::forward(const variable& input) { return forward_through(children_, input); }

void Sequential::each_child(const child_visitor& visit) {
  for (std::size_t i = 0; i < children_.size(); ++i) visit(names_[i], *children_[i]);
}

}  // namespace troupe::nn
