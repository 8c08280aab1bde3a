#pragma once
#include <chrono>
#include <cstdint>
#include <memory>

#include "troupe/tensor/device.hpp"

namespace troupe {

class stream_event;

/// When a device comes to points of its work, by the host's steady clock (std::chrono::steady_clock), in
/// nanoseconds. Work on the CPU is done when it is called; what is queued on a GPU is done later, and its
/// times are known then. Not thread-safe.
class stream_clock {
 public:
  /// A point between what is queued before it and what is queued after it.
  class point {
   public:
    point() = default;
    /// When it was made, by the host.
    std::int64_t made_ns() const { return ns_; }

   private:
    friend class stream_clock;
    std::int64_t ns_ = 0;                            ///< when it was made
    std::shared_ptr<const stream_event> in_stream_;  ///< null on the CPU
    std::shared_ptr<const point> compared_;          ///< a point before it whose time on the host is known
  };

  explicit stream_clock(device of = {}) : device_(of) {}

  /// The clocks of GPU and host drift apart, by microseconds in a second: they are compared again after this
  /// time. It takes some microseconds, and waits for nothing that is queued.
  static constexpr std::chrono::seconds interval{1};

  /// Behind what is queued by now. Throws std::logic_error while this thread captures (captured_step.hpp),
  /// device_lost.
  point now();
  /// Whether the device has come to it. Throws device_lost.
  bool is_past(const point& which) const;
  /// Until it has. Throws device_lost.
  void wait_for(const point& which) const;
  /// When it came to it; it is_past.
  std::int64_t ns_of(const point& which) const;

 private:
  void compare();

  device device_;
  std::shared_ptr<const point> compared_;  ///< its ns_ is when the GPU came to it
};

}  // namespace troupe
