#pragma once
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "troupe/job/call.hpp"
#include "troupe/job/call_log.hpp"

namespace troupe {

/// The calls of one process's program: the current one, those queued behind it, and the results of earlier
/// ones.
///
/// Usually there is one call at a time. A program that leaves a call by an exception of a callback may make
/// the next call while the first still runs; it is queued and starts when the first is over.
class call_queue {
 public:
  /// Bound of queued calls; a correct program blocks in each call and queues at most a few.
  static constexpr std::size_t max_waiting = 1024;
  explicit call_queue(std::shared_ptr<call_log> completed = std::make_shared<call_log>())
      : completed_(std::move(completed)) {}

  /// What the caller must do after an event.
  struct outcome {
    std::vector<call_result> told;  ///< results to send to the user's thread, in this order
    bool begins = false;            ///< the current call has changed and must be announced
    bool operator==(const outcome&) const = default;
  };

  /// The program makes a call. If its result is known, it is returned at once. Throws std::length_error if
  /// more than max_waiting calls would be queued.
  outcome enter(const call_request& request);
  /// A call is complete in all processes. Idempotent.
  outcome finished(const call_result& result);

  const std::optional<call_request>& current() const { return current_; }
  /// Shared with the scheduler of this process, which may append a result before it sends call_finished.
  const std::shared_ptr<call_log>& completed() const { return completed_; }

 private:
  outcome begin_next();

  std::optional<call_request> current_;
  std::deque<call_request> next_;
  std::shared_ptr<call_log> completed_;
};

}  // namespace troupe
