#include "troupe/tensor/async/stream_clock.hpp"

#include <limits>
#include <thread>
#include <utility>

#include "troupe/tensor/detail/device_memory.hpp"

namespace troupe {
namespace {

std::int64_t host_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

/// A GPU comes to a point of a stream without work at once: polled, since a thread that sleeps wakes some 50
/// us later. Of several attempts the shortest counts, in which this thread was not interrupted. The point is
/// taken for as late as it can have been: so nothing seems to happen before it was queued.
void stream_clock::compare() {
  constexpr int num_attempts = 3;
  std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
  for (int attempt = 0; attempt < num_attempts; ++attempt) {
    point next;
    auto begin_ns = host_ns();
    next.in_stream_ = record_idle_cuda(device_.index);
    while (!is_past(next)) std::this_thread::yield();
    next.ns_ = host_ns();
    if (next.ns_ - begin_ns >= shortest) continue;
    shortest = next.ns_ - begin_ns;
    compared_ = std::make_shared<const point>(std::move(next));
  }
}

stream_clock::point stream_clock::now() {
  point made;
  made.ns_ = host_ns();
  if (device_.type == device::kind::cpu) return made;
  if (!compared_ || made.ns_ - compared_->ns_ >= std::chrono::nanoseconds(interval).count()) compare();
  made.compared_ = compared_;
  made.in_stream_ = record_cuda(device_.index, event_timing::timed);
  return made;
}

bool stream_clock::is_past(const point& which) const {
  return !which.in_stream_ || which.in_stream_->is_reached();
}

void stream_clock::wait_for(const point& which) const {
  if (which.in_stream_) which.in_stream_->wait();
}

std::int64_t stream_clock::ns_of(const point& which) const {
  if (!which.in_stream_) return which.ns_;
  return which.compared_->ns_ + which.in_stream_->since(*which.compared_->in_stream_).count();
}

}  // namespace troupe
