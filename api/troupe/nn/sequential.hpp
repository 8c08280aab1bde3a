#pragma once
#include <concepts>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "troupe/nn/child_list.hpp"
#include "troupe/nn/forward_through.hpp"
#include "troupe/nn/module.hpp"

namespace troupe::nn {

/// Runs modules in sequence. Children are named by their index unless they have an explicit name, so
/// parameters are named "0.weight", "0.bias", "2.weight" and so on, independent of the partition into stages.
class Sequential : public module_of<Sequential> {
 public:
  /// Modules by value or as shared pointers: Sequential(Flatten(), Linear(784, 10),
  /// std::make_shared<Mine>()).
  template <class... Modules>
  requires(!std::same_as<std::tuple<Modules...>, std::tuple<Sequential>>) explicit Sequential(
      Modules... modules) {
    (push_back(std::move(modules)), ...);
  }

  /// Throws std::invalid_argument for a null pointer, for parameters that this Sequential contains already,
  /// for a duplicate name, and for a TiedLinear whose weight no child before it has.
  void push_back(std::shared_ptr<Module> child) { push_back(std::to_string(size()), std::move(child)); }
  void push_back(std::string name, std::shared_ptr<Module> child) {
    children_.add("Sequential::push_back", std::move(name), std::move(child));
  }
  template <std::derived_from<Module> Child>
  void push_back(Child child) {
    push_back(std::make_shared<Child>(std::move(child)));
  }
  template <std::derived_from<Module> Child>
  void push_back(std::string name, Child child) {
    push_back(std::move(name), std::make_shared<Child>(std::move(child)));
  }

  int size() const { return children_.size(); }
  /// Throws std::out_of_range outside [0, size).
  const std::shared_ptr<Module>& operator[](int index) const { return children_[index]; }
  const std::string& name_of(int index) const { return children_.name_of(index); }
  /// The prefix of the parameter names of child `index`: "3."
  std::string prefix_of(int index) const { return children_.prefix_of(index); }

  variable forward(const variable& input) override { return forward_through(children_.modules(), input); }
  void each_child(const child_visitor& visit) override { children_.visit(visit); }

 private:
  child_list children_;
};

}  // namespace troupe::nn
