#pragma once
#include <atomic>

namespace troupe {

/// An update of parameters that has begun and not ended: for example the sum of their gradients over several
/// processes, and the optimizer's step that follows it. parameter::wait_ready waits for it.
///
/// One thread uses the parameters and this; `is_pending` may be read from any thread.
class pending_update {
 public:
  pending_update() = default;
  virtual ~pending_update() = default;
  pending_update(const pending_update&) = delete;
  pending_update& operator=(const pending_update&) = delete;

  bool is_pending() const { return is_pending_.load(std::memory_order_acquire); }
  void set_pending(bool is_pending) { is_pending_.store(is_pending, std::memory_order_release); }
  /// Returns when the update has ended, at once if none is pending. Throws what `finish` throws.
  void wait() {
    if (is_pending()) finish();
  }

 protected:
  /// Ends the update on the calling thread, or throws what keeps it from ending. Calls set_pending(false)
  /// before it returns.
  virtual void finish() = 0;

 private:
  std::atomic<bool> is_pending_ = false;
};

}  // namespace troupe
