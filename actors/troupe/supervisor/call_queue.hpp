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

/// The calls of one process's user: which one is under way, which wait behind it, what the others came to.
///
/// Usually there is one at a time. A user who leaves a call by an exception of its own makes the next ones
/// all the same: each begins when the one before is over.
class call_queue {
 public:
  /// Far more than a program can make on purpose: it waits in each.
  static constexpr std::size_t most_waiting = 1024;
  explicit call_queue(std::shared_ptr<call_log> completed = std::make_shared<call_log>())
      : completed_(std::move(completed)) {}

  /// What follows from an event.
  struct outcome {
    std::vector<call_result> told;  ///< to the user's thread, in this order
    bool begins = false;            ///< the current call is one that nobody was told of yet
    bool operator==(const outcome&) const = default;
  };

  /// The user makes a call. One that is over already has its result at once. Throws std::length_error when
  /// more than most_waiting would wait behind the current one.
  outcome enter(const call_request& request);
  /// A call is over everywhere. Told twice, it counts once.
  outcome finished(const call_result& result);

  const std::optional<call_request>& current() const { return current_; }
  /// Shared with a scheduler of this process, which may know of a result before it tells it.
  const std::shared_ptr<call_log>& completed() const { return completed_; }

 private:
  outcome begin_next();

  std::optional<call_request> current_;
  std::deque<call_request> next_;
  std::shared_ptr<call_log> completed_;
};

}  // namespace troupe
