#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include "troupe/autograd/parameter.hpp"
#include "troupe/ops/copy_by_name.hpp"
#include "troupe/optim/parameter_part.hpp"

namespace troupe::optim {

/// What an optimizer keeps for some parameters, and its step over them. The parameters outlive it.
class optimizer_state {
 public:
  virtual ~optimizer_state() = default;
  /// Step number `step`, from 0, with the gradients of the parameters that have one, which they no longer do
  /// afterwards (parameter::stepped).
  virtual void apply(std::uint64_t step) = 0;
  /// Whether an element's step depends on no other element's gradient, weight or state.
  virtual bool steps_elements_alone() const { return false; }
  /// If so, the same for these elements, whose gradients are there even if the parameter's update is still
  /// pending. Whoever has called it for all of a parameter calls parameter::stepped_with_converted.
  virtual void apply_to(std::uint64_t /*step*/, const parameter_part& /*which*/) {
    throw std::logic_error("[apply_to] expected an optimizer that steps_elements_alone(), got another");
  }
  /// Returns when every step that was applied has been made: an optimizer of DataParallel::make_optimizer
  /// makes it while the next forward pass runs. Throws what kept it from being made (collective_error).
  virtual void synchronize() {}
  /// Synchronizes, then gives live handles, named "<parameter>/<what>", for example "0.weight/exp_avg". The
  /// step number is no part of it: `apply` is told.
  virtual std::vector<named_tensor> state() const = 0;
  /// Copies what `state` gave in another run. Throws std::runtime_error, and changes nothing, unless names,
  /// shapes and dtypes are the same.
  void load_state(const std::vector<named_tensor>& saved) { copy_by_name(state(), saved); }
};

/// An optimizer as a description: cheap to copy, and each stage makes from it the state for its own,
/// materialized parameters. SGD, Adam, AdamW and LAMB are such; so is any function like this.
using Optimizer = std::function<std::unique_ptr<optimizer_state>(std::vector<named_parameter>)>;

}  // namespace troupe::optim
