#pragma once
#include <concepts>
#include <memory>
#include <utility>

#include "troupe/nn/module.hpp"

namespace troupe::nn {

/// Activation checkpointing: only the module's input is saved for backward, which recomputes the module's
/// forward pass. Less memory, one more forward pass, the same bits (troupe/autograd/checkpoint.hpp).
///
///     layers.push_back(Checkpoint(TransformerBlock({.features = 512})));
///
/// Parameters, buffers and their names are those of the wrapped module. Running statistics are updated once
/// per step. A copy clones the wrapped module.
class Checkpoint : public module_of<Checkpoint> {
 public:
  /// Throws std::invalid_argument for a null pointer.
  explicit Checkpoint(std::shared_ptr<Module> module);
  template <std::derived_from<Module> Wrapped>
  requires(!std::same_as<Wrapped, Checkpoint>) explicit Checkpoint(Wrapped module)
      : Checkpoint(std::make_shared<Wrapped>(std::move(module))) {}
  Checkpoint(const Checkpoint& other);
  Checkpoint(Checkpoint&&) = default;
  Checkpoint& operator=(Checkpoint other) noexcept;

  const std::shared_ptr<Module>& module() const { return module_; }
  variable forward(const variable& input) override;
  void each_child(const child_visitor& visit) override { visit({}, *module_); }
  void tie_weights(const weight_finder& find) override { module_->tie_weights(find); }

 private:
  std::shared_ptr<Module> module_;
};

}  // namespace troupe::nn
