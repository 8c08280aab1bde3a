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
  waiter       ///< whoever waits for it, from then on: no other thread is woken, so the least latency; small
               ///< calls begin at once
};

/// What longer time-outs count as: clocks can still be set to it.
constexpr std::chrono::milliseconds longest_timeout = std::chrono::hours(24 * 365);

struct call_options {
  /// From when it begins (earlier calls have ended) until it must have ended; 0: the group's.
  std::chrono::milliseconds timeout{0};
  progress_by progress = progress_by::background;
};

/// One call and what became of it. The queue's, until `finished`.
struct call {
  using clock = std::chrono::steady_clock;

  call() = default;
  call(collective_operation of, const call_options& how) : what(std::move(of)), options(how) {}

  collective_operation what;
  std::uint64_t sequence = 0;
  call_options options;
  std::optional<algorithm> running;
  /// The same of a small call that ended soon after it began: the clock was not read twice.
  clock::time_point begun, ended;
  bool has_waited = false;   ///< it did not end when it was first looked at
  bool is_delayed = false;   ///< it did not end soon
  std::exception_ptr error;  ///< to be read once finished
  std::atomic<bool> finished = false;
};

}  // namespace troupe
