#pragma once
#include <cstddef>
#include <functional>
#include <vector>

#include "troupe/autograd/parameter.hpp"
#include "troupe/tensor/captured_step.hpp"

namespace troupe {

/// A forward and backward pass that every step repeats, as a captured_step: on a GPU all of it is queued at
/// once. The optimizer's step stays outside, since its factors change with the step's number.
///
///   captured_pass pass(gpu, [&] { ... loss.backward(); }, model.parameters());
///   each step: copy the batch into the tensors that the work reads; pass.run(); optimizer->apply(step);
///
/// The passes of a DataParallel are refused while they are recorded, since replays would leave out what they
/// reduce. What is recorded is the model's own pass, and its gradients are reduced after each run:
///
///   captured_pass pass(gpu, [&] { ... loss.backward(replicated.initial_gradient()); }, parameters);
///   each step: copy the batch; pass.run(); replicated.sync_gradients(); optimizer->apply(step);
class captured_pass {
 public:
  /// What captured_step says of `work` holds. The parameters outlive it.
  captured_pass(device where, std::function<void()> work, std::vector<parameter*> parameters);

  /// Waits for the parameters' pending updates. Afterwards those that the work reaches have their gradient.
  /// Throws std::logic_error if one of them has a gradient before, since what was recorded overwrites it and
  /// does not add to it; or if its value or gradient is no longer where it was when it was recorded. After
  /// what the work throws no parameter has a gradient, and the next pass of any kind is right.
  void run();
  bool is_recorded() const { return step_.is_recorded(); }

 private:
  /// Where the recording finds a parameter.
  struct memory_places {
    const std::byte* value;
    const std::byte* gradient;
    bool operator==(const memory_places&) const = default;
  };

  void require_no_gradients() const;
  void require_same_memory() const;
  void run_step();
  static memory_places memory_of(const parameter& which);

  captured_step step_;
  std::vector<parameter*> parameters_;
  std::vector<parameter*> reached_;      ///< known when the first run is over
  std::vector<memory_places> recorded_;  ///< of parameters_, known when the pass is recorded
};

}  // namespace troupe
