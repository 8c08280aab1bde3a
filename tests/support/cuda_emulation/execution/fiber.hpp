#pragma once
#include <cstddef>

namespace troupe::emulation {

/// A stack on which a function runs until it switches to another fiber. All fibers that switch to each other
/// belong to one OS thread. A switch saves the registers that a call keeps (System V ABI, x86-64), not the
/// rounding mode.
class fiber {
 public:
  /// The calling OS thread's own stack.
  fiber() = default;
  /// A new stack, on which `run`, which never returns, starts at the first switch to it. `number` staggers
  /// the beginnings of stacks, which would otherwise map to the same cache lines.
  fiber(void (*run)(), unsigned number);
  ~fiber();
  fiber(const fiber&) = delete;
  fiber& operator=(const fiber&) = delete;

  /// Leaves `from`, which is running, for `to`; returns when something switches back to `from`.
  static void switch_between(fiber& from, fiber& to);
  /// `run` must call this first.
  static void begin();

 private:
  void* stack_pointer_ = nullptr;
  void* memory_ = nullptr;  ///< with a guard page below
  // The data of a stack that AddressSanitizer needs.
  const void* bottom_ = nullptr;
  std::size_t size_ = 0;
  void* fake_stack_ = nullptr;
};

}  // namespace troupe::emulation
