#pragma once
#include <vector>

#include "troupe/autograd/parameter.hpp"
#include "troupe/tensor/captured_step.hpp"

namespace troupe {

/// A forward and backward pass that every step repeats, as a captured_step: on a GPU all of it is queued at
/// once. The optimizer's step stays outside, since its factors change with the step's number.
///
///   captured_pass pass(gpu, [&] { ... loss.backward(); }, model.parameters());
///   each step: copy the batch into the tensors that the work reads; pass.run(); optimizer->apply(step);
class captured_pass {
 public:
  /// What captured_step says of `work` holds, and where gradients are handed to a hook, the hook is work as
  /// well: one that reduces over GPUs, as a DataParallel's does, is refused while it is recorded. The
  /// parameters outlive it.
  captured_pass(device where, std::function<void()> work, std::vector<parameter*> parameters);

  /// Afterwards the parameters that the work reaches have their gradient. Throws std::logic_error if one of
  /// them has a gradient before: what was recorded overwrites it, and does not add to it.
  void run();
  bool is_recorded() const { return step_.is_recorded(); }

 private:
  captured_step step_;
  std::vector<parameter*> parameters_;
  std::vector<parameter*> reached_;  ///< known when the first run is over
};

}  // namespace troupe
