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

/// The state of an optimizer for some parameters, and its step over them. The parameters must outlive it.
class optimizer_state {
 public:
  virtual ~optimizer_state() = default;
  /// Applies step number `step` of the job, from 0, to the parameters that have a gradient, and marks their
  /// gradients as used (parameter::mark_stepped). The learning rate's schedule goes by this number; what
  /// depends on how often a parameter was stepped, as Adam's bias correction, by a number in the state.
  virtual void apply(std::uint64_t step) = 0;
  /// Whether the step of an element depends only on that element's gradient, weight and state, and not on the
  /// parameter's shape: with shards (Pipeline::shard) it may get some of the elements as a parameter.
  virtual bool is_elementwise() const { return false; }
  /// Applies the step to some elements of a parameter; only if is_elementwise(). `gradient`: f32 [count], of
  /// these elements, wherever it lies; the parameter's update may be pending. After it has stepped all
  /// elements of a parameter, the caller calls end_parts, then parameter::mark_stepped_with_converted.
  virtual void apply_part(std::uint64_t /*step*/, const parameter_part& /*which*/,
                          const tensor& /*gradient*/) {
    throw std::logic_error("[apply_part] expected an optimizer that is_elementwise(), got another");
  }
  /// Called when apply_part has stepped all elements of parameter `index` in step `step`.
  virtual void end_parts(std::uint64_t /*step*/, std::size_t /*index*/) {}
  /// Drops the gradients of the parameters (PyTorch's zero_grad, which sets them to none), so that the next
  /// backward pass begins anew. Such gradients are left by a backward pass through another model's loss, or
  /// by a step that is not to be made. After `apply` there are none. The default throws std::logic_error, for
  /// optimizers of one's own without it.
  virtual void zero_grad() {
    throw std::logic_error(
        "[zero_grad] expected an optimizer that overrides zero_grad, got one without it: call zero_grad() of "
        "the model");
  }
  /// Waits until all applied steps are complete; an optimizer of DataParallel::make_optimizer completes them
  /// asynchronously. Throws the error that prevented a step (collective_error).
  virtual void synchronize() {}
  /// Synchronizes, then returns handles to the state, named "<parameter>/<name>", for example
  /// "0.weight/exp_avg". The job's step number is not part of it: it is an argument of `apply`.
  virtual std::vector<named_tensor> state() const = 0;
  /// Restores a saved `state`. One that an earlier version of Troupe saved has no numbers of steps: each
  /// parameter then goes on as if it had been stepped in all steps of the job. Throws std::runtime_error and
  /// changes nothing if names, shapes or dtypes differ.
  void load_state(const std::vector<named_tensor>& saved);
};

/// A saved state of an earlier version of Troupe, which did not count the steps of each parameter, with such
/// counts for `state` that say so (troupe/contents/step_counts.hpp); any other as it is.
std::vector<named_tensor> with_step_counts(std::vector<named_tensor> saved,
                                           const std::vector<named_tensor>& state);

/// A factory of optimizer states: cheap to copy; each stage calls it with its own materialized parameters.
/// SGD, Adam, AdamW, LAMB and any function of this signature can be used.
using Optimizer = std::function<std::unique_ptr<optimizer_state>(std::vector<named_parameter>)>;

/// The state that the factory makes. Throws bad_input if it makes none.
std::unique_ptr<optimizer_state> make_state(const Optimizer& optimizer,
                                            std::vector<named_parameter> parameters);

}  // namespace troupe::optim
