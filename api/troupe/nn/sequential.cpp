#include "troupe/nn/sequential.hpp"

#include <algorithm>

#include "troupe/error/errors.hpp"
#include "troupe/nn/forward_through.hpp"

namespace troupe::nn {

Sequential::Sequential(const Sequential& other) : module_of(other) {
  for (std::size_t i = 0; i < other.children_.size(); ++i) {
    auto copy = other.children_[i]->clone();
    tie(*copy);
    names_.push_back(other.names_[i]);
    children_.push_back(std::move(copy));
  }
}

Sequential& Sequential::operator=(Sequential other) noexcept {
  module_of::operator=(other);
  names_ = std::move(other.names_);
  children_ = std::move(other.children_);
  return *this;
}

void Sequential::push_back(std::string name, std::shared_ptr<Module> child) {
  if (!child) throw_invalid("Sequential::push_back", "a module", "a null pointer");
  require_new(*child, name);
  if (std::ranges::find(names_, name) != names_.end())
    throw_invalid("Sequential::push_back", "a name that no other child has", name);
  tie(*child);
  names_.push_back(std::move(name));
  children_.push_back(std::move(child));
}

/// Throws for a module that is contained twice: it would become two modules in a clone and in pipeline
/// stages.
void Sequential::require_new(Module& newcomer, const std::string& name) const {
  auto own = newcomer.named_parameters(name + ".");
  for (int index = 0; index < size(); ++index)
    for (const auto& known : (*this)[index]->named_parameters(prefix_of(index)))
      if (auto same = std::ranges::find(own, known.target, &named_parameter::target); same != own.end())
        throw_invalid("Sequential::push_back", "each module with parameters once",
                      "the same as " + known.name + " and " + same->name +
                          ": make two modules, or tie a weight with TiedLinear");
}

/// Looks up the weight for a tied layer; the returned pointer keeps the owning layer alive.
void Sequential::tie(Module& newcomer) {
  newcomer.tie_weights([this](const std::string& name) -> std::shared_ptr<parameter> {
    for (int index = 0; index < size(); ++index)
      for (const auto& each : (*this)[index]->named_parameters(prefix_of(index)))
        if (each.name == name) return {(*this)[index], each.target};
    return nullptr;
  });
}

variable Sequential::forward(const variable& input) { return forward_through(children_, input); }

void Sequential::each_child(const child_visitor& visit) {
  for (std::size_t i = 0; i < children_.size(); ++i) visit(names_[i], *children_[i]);
}

}  // namespace troupe::nn
