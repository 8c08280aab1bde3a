#pragma once
#include <atomic>

namespace troupe {

/// An asynchronous update of parameters: for example the reduction of their gradients over several processes
/// and the optimizer's step after it. parameter::wait_ready waits for it.
///
/// Used by the thread that uses the parameters; only `is_pending` is thread-safe.
class pending_update {
 public:
  pending_update() = default;
  virtual ~pending_update() = default;
  pending_update(const pending_update&) = delete;
  pending_update& operator=(const pending_update&) = delete;

  bool is_pending() const { return is_pending_.load(std::memory_order_acquire); }
  void set_pending(bool is_pending) { is_pending_.store(is_pending, std::memory_order_release); }
  /// Waits until the update is complete; returns at once if none is pending. Throws what `finish` throws.
  void wait() {
    if (is_pending()) finish();
  }

 protected:
  /// Completes the update on the calling thread, or throws the error that prevents it. Calls
  /// set_pending(false) before it returns.
  virtual void finish() = 0;

 private:
  std::atomic<bool> is_pending_ = false;
};

}  // namespace troupe
