#pragma once
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>

#include "troupe/collective/calls/operation.hpp"
#include "troupe/collective/engine/algorithm.hpp"

namespace troupe {

/// Which thread makes progress on a call.
enum class progress_by : std::uint8_t {
  background,  ///< the progress engine of the process, at once: communication overlaps computation
  waiter       ///< the thread that waits for the call: least latency, since no thread is woken; a small call
               ///< begins at once
};

/// Longer time-outs are cut to this, which clocks can still represent.
constexpr std::chrono::milliseconds longest_timeout = std::chrono::hours(24 * 365);

struct call_options {
  /// From the call's beginning, when the calls before it have ended, to its end. 0: the group's.
  std::chrono::milliseconds timeout{0};
  progress_by progress = progress_by::background;
};

namespace collective {

/// One call and its outcome. Owned by the operation_queue until `finished`.
struct call {
  using clock = std::chrono::steady_clock;

  call() = default;
  call(collective_operation operation, const call_options& how) : what(std::move(operation)), options(how) {}

  collective_operation what;
  std::uint64_t sequence = 0;
  call_options options;
  std::optional<algorithm> running;
  /// Equal for a small call that ended soon: the clock was read once.
  clock::time_point begun, ended;
  bool has_waited = false;   ///< it did not end in its first round
  bool is_delayed = false;   ///< it was still running at a check of timeouts
  std::exception_ptr error;  ///< may be read once finished
  std::atomic<bool> finished = false;
};

class group_progress;

}  // namespace collective

/// A handle to a call in flight. Copies refer to the same call. The handle keeps the call's tensors alive;
/// they must not be read or written until the call has ended. Destroying the handle does not end the call.
/// The communicator outlives its handles' use. Thread-safe.
class work {
 public:
  /// A handle to nothing, which counts as ended.
  work() = default;
  work(std::shared_ptr<collective::call> started, collective::group_progress& group)
      : call_(std::move(started)), group_(&group) {}

  /// Blocks until the call has ended, at most for its timeout. Throws collective_error if it failed.
  void wait();
  /// Whether the call has ended, well or not.
  bool is_done() const { return !call_ || call_->finished; }
  /// How long the call ran on this member. Of a call that has ended.
  std::chrono::nanoseconds time_taken() const {
    return call_ ? call_->ended - call_->begun : std::chrono::nanoseconds(0);
  }
  /// Aborts the whole group, since the other members cannot go on without this one: this call and all others
  /// fail with collective_error (cancelled). Does nothing if the call has ended.
  void cancel();
  /// Keeps `owner` alive as long as this handle and its copies.
  void keep(std::shared_ptr<const void> owner) { owner_ = std::move(owner); }

 private:
  std::shared_ptr<const void> owner_;  // last to go
  std::shared_ptr<collective::call> call_;
  collective::group_progress* group_ = nullptr;
};

}  // namespace troupe
