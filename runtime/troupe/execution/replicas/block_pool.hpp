#pragma once
#include <memory>

#include "troupe/program/stage_parameters.hpp"

namespace troupe::execution {

/// Memory that serves again when its tensors are gone, such as that of gradients, which a stage has for a
/// part of each step. The pool keeps it, and its account is charged for it, until it is cleared. Tensors may
/// outlive the pool, and may go on any thread.
class block_pool {
 public:
  /// `source`: where blocks come from; it outlives the pool and its tensors.
  explicit block_pool(program::stage_parameters::memory_source source);

  /// Elements of any value.
  tensor take(const shape& extents, dtype type);
  /// Returns the blocks that no tensor has.
  void clear();

 private:
  struct state;
  std::shared_ptr<state> state_;
};

}  // namespace troupe::execution
