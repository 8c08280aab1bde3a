#include "troupe/actor/actor_counters.hpp"

#include <time.h>

#include <algorithm>
#include <chrono>

namespace troupe::actors::actor {
namespace {

/// The time of the kernel's newest tick, up to 10 ms ago: a quarter of the cost of the exact time.
std::int64_t tick_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

double seconds(std::int64_t time_ns) {
  return static_cast<double>(std::max<std::int64_t>(0, time_ns)) * 1e-9;
}

}  // namespace

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void actor_counters::enqueued() {
  auto now = tick_ns();
  auto taken = num_taken_.load(std::memory_order_relaxed);
  bool is_first = num_enqueued_.load(std::memory_order_relaxed) == taken;
  if (marks_.is_due(now, is_first)) marks_.mark(num_enqueued_, taken, now);
  num_enqueued_.fetch_add(1, std::memory_order_relaxed);
}

void actor_counters::stopped_running(std::int64_t begun_ns) {
  running_since_ns_.compare_exchange_strong(begun_ns, 0, std::memory_order_relaxed);
}

void actor_counters::handled(std::int64_t time_ns) {
  add_alone(handler_ns_, static_cast<std::uint64_t>(std::max<std::int64_t>(0, time_ns)));
  add_alone(handler_times_[handler_bucket(time_ns)], 1);
}

/// A message is counted as enqueued before it can be taken, and the latter is read first: the depth is never
/// negative.
actor_counts actor_counters::read() const {
  actor_counts now;
  now.messages_in = num_taken_.load(std::memory_order_acquire);
  if (!is_closed_.load(std::memory_order_relaxed))
    now.mailbox_depth = num_enqueued_.load(std::memory_order_relaxed) - now.messages_in;
  if (now.mailbox_depth > 0) now.oldest_s = seconds(tick_ns() - marks_.arrival_ns(now.messages_in));
  if (auto since = running_since_ns_.load(std::memory_order_relaxed); since != 0)
    now.running_s = seconds(steady_ns() - since);
  now.messages_out = num_sent_.load(std::memory_order_relaxed);
  now.frame_bytes_in = frame_bytes_received_.load(std::memory_order_relaxed);
  now.frame_bytes_out = frame_bytes_sent_.load(std::memory_order_relaxed);
  now.handler_s = static_cast<double>(handler_ns_.load(std::memory_order_relaxed)) * 1e-9;
  for (const auto& count : handler_times_) now.handler_times.push_back(count.load(std::memory_order_relaxed));
  while (!now.handler_times.empty() && now.handler_times.back() == 0) now.handler_times.pop_back();
  return now;
}

}  // namespace troupe::actors::actor
