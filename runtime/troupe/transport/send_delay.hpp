#pragma once
#include <chrono>
#include <cstddef>
#include <memory>

namespace troupe::transport {

/// Delays the tensors that a process sends to others, all in one line, for measurements: a slow link. It
/// decides when each has left, behind the queues that order them. Thread-safe.
class send_delay {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  virtual ~send_delay() = default;
  /// Whether tensors are delayed; may change at any time.
  virtual bool is_on() const = 0;
  /// When a tensor has left that was queued at `put_at`. Asked for one after the other, in the order in which
  /// they leave.
  virtual time_point end_of(std::size_t num_bytes, time_point put_at) = 0;
};

/// Null: nothing is delayed.
using send_delay_ptr = std::shared_ptr<send_delay>;

}  // namespace troupe::transport
