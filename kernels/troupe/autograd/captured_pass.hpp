#pragma once
#include <cstddef>
#include <functional>
#include <vector>

#include "troupe/autograd/parameter.hpp"
#include "troupe/tensor/captured_step.hpp"

namespace troupe {

/// A forward and backward pass, repeated in every step, as a captured_step: on a GPU it is launched as one
/// CUDA graph. The optimizer's step is not part of it, since its factors depend on the step number.
///
///   captured_pass pass(gpu, [&] { ... loss.backward(); }, model.parameters());
///   each step: copy the batch into the tensors that the work reads; pass.run(); optimizer->apply(step);
///
/// The passes of a DataParallel throw during capture, since replays would leave out its collective calls.
/// Capture the model's own pass, and reduce the gradients after each run:
///
///   captured_pass pass(gpu, [&] { ... loss.backward(replicated.initial_gradient()); }, parameters);
///   each step: copy the batch; pass.run(); replicated.sync_gradients(); optimizer->apply(step);
class captured_pass {
 public:
  /// The requirements of captured_step on `work` apply. The parameters must outlive this object.
  captured_pass(device target, std::function<void()> work, std::vector<parameter*> parameters);

  /// Waits for the parameters' pending updates and runs the pass; afterwards the parameters that it reaches
  /// have a gradient. Throws std::logic_error if
  /// - one of them has a gradient before the call, since the captured work overwrites gradients and does not
  ///   accumulate
  /// - its value or gradient is no longer in the memory in which it was captured
  /// - other code than an optimizer changed a value (loaded weights, for example) and the graph reads a
  ///   conversion of the old one (autocast)
  ///
  /// If the work throws, no parameter has a gradient afterwards, and later passes of any kind are not
  /// affected.
  void run();
  bool is_captured() const { return step_.is_captured(); }

 private:
  /// The memory of a parameter that the captured graph reads and writes.
  struct parameter_addresses {
    const std::byte* value;
    const std::byte* gradient;
    const std::byte* converted;  ///< null if the graph converts the value itself
    bool operator==(const parameter_addresses&) const = default;
  };

  void require_no_gradients() const;
  void require_same_memory() const;
  void run_step();
  void capture_step();
  static parameter_addresses addresses_of(const parameter& parameter);

  captured_step step_;
  std::vector<parameter*> parameters_;
  std::vector<parameter*> reached_;            ///< known after the first run
  std::vector<parameter_addresses> captured_;  ///< of parameters_, known after capture
};

}  // namespace troupe
