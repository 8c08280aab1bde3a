#pragma once
#include <vector>

#include "troupe/collective/communicator/communicator.hpp"

namespace troupe::detail {

/// Memory of a group that serves again when its tensors are gone: of whole weights and gradients, which are
/// there for a part of a pass. It keeps what was taken at the same time at most. Not thread-safe.
class shared_blocks {
 public:
  /// The group outlives this object, not its tensors.
  explicit shared_blocks(communicator& group) : group_(group) {}

  /// f32 [num_elements] of any value.
  tensor take(std::int64_t num_elements, memory_category category);
  /// All that it keeps, in use or not.
  std::size_t size_bytes() const;

 private:
  communicator& group_;
  std::vector<tensor> blocks_;
};

}  // namespace troupe::detail
