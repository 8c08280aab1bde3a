#pragma once
#include <atomic>
#include <cstdint>

namespace troupe {

/// An asynchronous update of parameters: for example the reduction of their gradients over several processes
/// and the optimizer's step after it. Where others hold values between their uses (shards), it also brings
/// them. parameter::wait_ready waits for both.
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
  void wait_update() {
    if (is_pending()) finish();
  }
  /// The same, then brings the values that the parameters are about to be read for. Throws what either
  /// throws.
  void wait() {
    wait_update();
    bring_values();
  }

 protected:
  /// Completes the update on the calling thread, or throws the error that prevents it. Calls
  /// set_pending(false) before it returns.
  virtual void finish() = 0;
  /// Attaches values that others hold. Nothing where values stay attached.
  virtual void bring_values() {}

 private:
  std::atomic<bool> is_pending_ = false;
};

/// While it lives, the values that this thread waits for are read together: by one operation. What is brought
/// for one of them must not let go of another.
class values_read_together {
 public:
  values_read_together();
  ~values_read_together();
  values_read_together(const values_read_together&) = delete;
  values_read_together& operator=(const values_read_together&) = delete;

  /// The number of the operation that this thread waits for; outside of a scope a new number at each call.
  static std::uint64_t current();
};

}  // namespace troupe
