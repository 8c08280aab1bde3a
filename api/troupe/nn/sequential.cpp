#include "troupe/nn/sequential.hpp"

#include <algorithm>

#include "troupe/error/errors.hpp"

namespace troupe::nn {

Sequential::Sequential(const Sequential& other) : module_of(other) {
  for (const auto& [name, module] : other.children_) {
    auto copy = module->clone();
    tie(*copy);
    children_.push_back({name, std::move(copy)});
  }
}

Sequential& Sequential::operator=(Sequential other) noexcept {
  module_of::operator=(other);
  children_ = std::move(other.children_);
  return *this;
}

void Sequential::push_back(std::string name, std::shared_ptr<Module> child) {
  if (!child) throw_invalid("Sequential::push_back", "a module", "a null pointer");
  if (child->num_parameters() > 0 &&
      std::ranges::find(children_, child, &named_child::module) != children_.end())
    throw_invalid("Sequential::push_back", "each module with parameters once", "the same one twice");
  if (std::ranges::find(children_, name, &named_child::name) != children_.end())
    throw_invalid("Sequential::push_back", "a name that no other child has", name);
  tie(*child);
  children_.push_back({std::move(name), std::move(child)});
}

/// What it finds keeps the layer alive that it is in.
void Sequential::tie(Module& newcomer) {
  newcomer.use_weights_of([this](const std::string& name) -> std::shared_ptr<parameter> {
    for (int index = 0; index < size(); ++index)
      for (const auto& each : (*this)[index]->named_parameters(prefix_of(index)))
        if (each.name == name) return {(*this)[index], each.target};
    return nullptr;
  });
}

variable Sequential::forward(const variable& input) {
  auto value = input;
  for (const auto& child : children_) value = child.module->forward(value);
  return value;
}

void Sequential::each_child(const child_visitor& visit) {
  for (auto& [name, module] : children_) visit(name, *module);
}

}  // namespace troupe::nn
