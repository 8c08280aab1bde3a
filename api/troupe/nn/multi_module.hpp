#pragma once
#include <memory>
#include <vector>

#include "troupe/nn/module.hpp"

namespace troupe::nn {

/// A module with several inputs or outputs: a node of a Graph. A user-defined one derives from
/// multi_module_of<Itself>, says how many it has, and implements forward_all.
class MultiModule : public Module {
 public:
  static constexpr int any_number = -1;

  /// any_number: one or more.
  virtual int num_inputs() const = 0;
  virtual int num_outputs() const { return 1; }
  /// Computes the outputs, recorded for backward as Module::forward does. Gets num_inputs() variables, and
  /// returns num_outputs().
  virtual std::vector<variable> forward_all(const std::vector<variable>& inputs) = 0;

  using Module::operator();
  /// Calls forward_all. Errors name this module as Module's operator() does. Throws std::invalid_argument for
  /// another number of inputs, and std::logic_error if forward_all returns another number of outputs.
  std::vector<variable> operator()(const std::vector<variable>& inputs);
  /// For modules with one input and one output, which need not be in a Graph. Throws std::logic_error for
  /// others.
  variable forward(const variable& input) override;
};

/// Implements `clone`, as module_of does.
template <class Derived>
class multi_module_of : public MultiModule {
 public:
  std::shared_ptr<Module> clone() const override {
    auto copy = std::make_shared<Derived>(static_cast<const Derived&>(*this));
    auto& as_base = static_cast<multi_module_of&>(*copy);
    as_base.require_own_parts(*this);
    as_base.copy_modes(*this);
    return copy;
  }
};

/// The number of inputs and outputs of any module.
int num_inputs_of(const Module& module);
int num_outputs_of(const Module& module);

}  // namespace troupe::nn
