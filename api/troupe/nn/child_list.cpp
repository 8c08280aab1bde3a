#include "troupe/nn/child_list.hpp"

#include <algorithm>

#include "troupe/error/errors.hpp"

namespace troupe::nn {

child_list::child_list(const child_list& other) : names_(other.names_) {
  for (const auto& child : other.children_) {
    auto copy = child->clone();
    tie(*copy);
    children_.push_back(std::move(copy));
  }
}

void child_list::add(const char* function, std::string name, std::shared_ptr<Module> child) {
  if (!child) throw_invalid(function, "a module", "a null pointer");
  require_new(function, *child, name);
  if (std::ranges::find(names_, name) != names_.end())
    throw_invalid(function, "a name that no other child has", name);
  tie(*child);
  names_.push_back(std::move(name));
  children_.push_back(std::move(child));
}

/// Throws for a module that is contained twice: it would become two modules in a clone and in pipeline
/// stages.
void child_list::require_new(const char* function, Module& newcomer, const std::string& name) const {
  auto own = newcomer.named_parameters(name + ".");
  for (int index = 0; index < size(); ++index)
    for (const auto& known : (*this)[index]->named_parameters(prefix_of(index)))
      if (auto same = std::ranges::find(own, known.target, &named_parameter::target); same != own.end())
        throw_invalid(function, "each module with parameters once",
                      "the same as " + known.name + " and " + same->name +
                          ": make two modules, or tie a weight with TiedLinear");
}

/// Looks up the weight for a tied layer; the returned pointer keeps the owning layer alive.
void child_list::tie(Module& newcomer) const {
  newcomer.tie_weights([this](const std::string& name) -> std::shared_ptr<parameter> {
    for (int index = 0; index < size(); ++index)
      for (const auto& each : (*this)[index]->named_parameters(prefix_of(index)))
        if (each.name == name) return {(*this)[index], each.target};
    return nullptr;
  });
}

void child_list::visit(const Module::child_visitor& visitor) const {
  for (std::size_t i = 0; i < children_.size(); ++i) visitor(names_[i], *children_[i]);
}

}  // namespace troupe::nn
