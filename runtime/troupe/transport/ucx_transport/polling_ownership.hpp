#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>

namespace troupe::transport {

class tensor_waiter;

/// Ownership of polling the data plane. A waiter that owns it polls and receives tensors on its own thread;
/// if no waiter does, the transport's thread polls.
///
/// The owner records each poll. If it records none for `poll_timeout` and does not sleep in the transport,
/// the transport's thread takes the owner for busy and polls too, until the owner polls again. For that the
/// transport's thread must wake up periodically while there is an owner: needs_watching() tells it so before
/// it sleeps. A waiter that becomes owner while that thread sleeps without a limit wakes it
/// (must_wake_watcher).
class polling_ownership {
 public:
  static constexpr auto poll_timeout = std::chrono::milliseconds(1);

  /// False: another waiter owns it. Any thread.
  bool acquire(const tensor_waiter& waiter) {
    auto* owner = owner_.load();
    if (owner != &waiter) {
      if (owner || !owner_.compare_exchange_strong(owner, &waiter)) return false;
      ++acquisitions_;
    }
    record_poll();
    return true;
  }
  /// Owner only: records a poll.
  void record_poll() { polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
  bool is_owner(const tensor_waiter& waiter) const { return owner_ == &waiter; }
  bool is_owned() const { return owner_ != nullptr; }
  /// Owner only. The transport's thread polls from now on.
  void release() { owner_ = nullptr; }
  /// Owner only: it sleeps until a descriptor is readable, which counts as polling.
  void begin_sleep() { asleep_ = true; }
  void end_sleep() { asleep_ = false; }

  /// Owner only: whether the transport's thread sleeps without a limit and must be woken, so that it notices
  /// when the owner stops polling.
  bool must_wake_watcher() { return unwatched_ && unwatched_.exchange(false); }

  /// The transport's thread only, before it sleeps: whether there is or has just been an owner, so that the
  /// thread must wake up by itself and check is_owner_polling(). If false, the next owner wakes it.
  bool needs_watching() {
    unwatched_ = true;
    if (!is_owned()) {
      if (seen_acquisitions_ == acquisitions_) return false;
      seen_acquisitions_ = acquisitions_;
    }
    unwatched_ = false;
    return true;
  }
  /// The transport's thread only: whether an owner polls or sleeps in the transport.
  bool is_owner_polling() {
    if (!is_owned()) return false;
    auto polls = polls_.load(std::memory_order_relaxed);
    auto now = std::chrono::steady_clock::now();
    if (polls != seen_polls_ || asleep_) {
      seen_polls_ = polls;
      seen_at_ = now;
    }
    return now - seen_at_ < poll_timeout;
  }

 private:
  std::atomic<const tensor_waiter*> owner_ = nullptr;
  std::atomic<bool> asleep_ = false;
  std::atomic<bool> unwatched_ = false;
  std::atomic<std::uint64_t> acquisitions_ = 0;
  std::atomic<std::uint64_t> polls_ = 0;  ///< written by the owner
  std::uint64_t seen_acquisitions_ = 0;
  std::uint64_t seen_polls_ = 0;
  std::chrono::steady_clock::time_point seen_at_;
};

}  // namespace troupe::transport
