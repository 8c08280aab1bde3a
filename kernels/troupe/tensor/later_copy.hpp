#pragma once
#include <memory>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

class queue_mark;

/// A copy of a tensor to the memory of the CPU, made when its elements are computed, while the device goes on
/// with what is queued after them. On the CPU it is the tensor itself.
class later_copy {
 public:
  /// What is queued for the elements by now, on this thread or by one that this one has waited for, comes
  /// before the copy. The elements must not change until it is taken. Throws std::logic_error while this
  /// thread captures (captured_step.hpp).
  explicit later_copy(tensor source);
  later_copy(later_copy&&) noexcept;
  later_copy& operator=(later_copy&&) noexcept;
  ~later_copy();

  /// Whether take() need not wait for the elements. Throws device_lost.
  bool is_ready() const;
  /// Waits for the elements, and copies them. Any thread may call it, once. Throws device_lost.
  tensor take();

 private:
  tensor source_;
  std::unique_ptr<queue_mark> computed_;  ///< when the elements are; null on the CPU
};

}  // namespace troupe
