#pragma once
#include <concepts>
#include <memory>
#include <utility>

#include "troupe/nn/module.hpp"

namespace troupe::nn {

/// A module of which only the input is kept for backward, which computes the module again: the same bits for
/// less memory and one more forward of the module (troupe/autograd/checkpoint.hpp).
///
///     layers.push_back(Checkpoint(TransformerBlock({.features = 512})));
///
/// Parameters, buffers and their names are the module's own, and running statistics move once. A copy has a
/// module of its own.
class Checkpoint : public module_of<Checkpoint> {
 public:
  /// Throws std::invalid_argument for a null pointer.
  explicit Checkpoint(std::shared_ptr<Module> of);
  template <std::derived_from<Module> Wrapped>
  requires(!std::same_as<Wrapped, Checkpoint>) explicit Checkpoint(Wrapped of)
      : Checkpoint(std::make_shared<Wrapped>(std::move(of))) {}
  Checkpoint(const Checkpoint& other);
  Checkpoint(Checkpoint&&) = default;
  Checkpoint& operator=(Checkpoint other) noexcept;

  const std::shared_ptr<Module>& module() const { return module_; }
  variable forward(const variable& input) override;
  void each_child(const child_visitor& visit) override { visit({}, *module_); }
  void use_weights_of(const weight_finder& find) override { module_->use_weights_of(find); }

 private:
  std::shared_ptr<Module> module_;
};

}  // namespace troupe::nn
