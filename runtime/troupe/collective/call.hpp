#pragma once
#include <atomic>
#include <chrono>
#include <exception>
#include <optional>

#include "troupe/collective/algorithm.hpp"
#include "troupe/collective/operation.hpp"

namespace troupe {

/// Who moves a call on.
enum class progress_by : std::uint8_t {
  background,  ///< the group's own thread, from now on: communication beside computation
  waiter       ///< whoever waits for it, from then on: no other thread is woken, so the least latency
};

struct call_options {
  /// From when it begins (earlier calls have ended) until it must have ended; 0: the group's.
  std::chrono::milliseconds timeout{0};
  progress_by progress = progress_by::background;
};

/// One call and what became of it. The queue's, until `finished`.
struct call {
  using clock = std::chrono::steady_clock;

  collective_operation what;
  std::uint64_t sequence = 0;
  call_options options;
  std::optional<algorithm> running;
  clock::time_point submitted, begun, ended;
  std::exception_ptr error;  ///< to be read once finished
  std::atomic<bool> finished = false;
};

}  // namespace troupe
