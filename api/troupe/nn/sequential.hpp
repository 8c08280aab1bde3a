#pragma once
#include <concepts>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "troupe/nn/module.hpp"

namespace troupe::nn {

/// Modules one after the other. Children are named by their index, so parameters are "0.weight", "0.bias",
/// "2.weight" and so on, however the model is cut into stages later. Copies share the children; `clone` does
/// not.
class Sequential : public Module {
 public:
  /// Modules by value or as shared pointers: Sequential(Flatten(), Linear(784, 10),
  /// std::make_shared<Mine>()).
  template <class... Modules>
  explicit Sequential(Modules... modules) {
    (push_back(std::move(modules)), ...);
  }

  /// Throws std::invalid_argument for a null pointer and for parameters that are in here already.
  void push_back(std::shared_ptr<Module> child);
  template <std::derived_from<Module> Child>
  void push_back(Child child) {
    push_back(std::make_shared<Child>(std::move(child)));
  }

  int size() const { return static_cast<int>(children_.size()); }
  /// Throws std::out_of_range outside [0, size).
  const std::shared_ptr<Module>& operator[](int index) const {
    return children_.at(static_cast<std::size_t>(index));
  }

  variable forward(const variable& input) override;
  std::shared_ptr<Module> clone() const override;
  void materialize(std::uint64_t seed, const std::string& prefix) override;
  std::int64_t num_parameters() const override;
  double cost() const override;

 private:
  void collect_parameters(const std::string& prefix, std::vector<named_parameter>& into) override;

  std::vector<std::shared_ptr<Module>> children_;
};

/// What the names of a Sequential's child `index` begin with: "3."
std::string child_prefix(int index);

}  // namespace troupe::nn
