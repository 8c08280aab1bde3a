#pragma once
#include <deque>
#include <optional>
#include <vector>

#include "troupe/job/call.hpp"

namespace troupe {

/// The calls of one process's user: which one is under way, which wait behind it, what the others came to.
///
/// Usually there is one at a time. A user who leaves a call by an exception of its own makes the next ones
/// all the same: each begins when the one before is over.
class call_queue {
 public:
  /// What follows from an event.
  struct outcome {
    std::vector<call_result> told;  ///< to the user's thread, in this order
    bool begins = false;            ///< the current call is one that nobody was told of yet
    bool operator==(const outcome&) const = default;
  };

  /// The user makes a call. One that is over already has its result at once.
  outcome enter(const call_request& request);
  /// A call is over everywhere. Told twice, it counts once.
  outcome finished(const call_result& result);
  /// The results of all calls that are over, from someone who may know more of them, or fewer.
  void learn(const std::vector<call_result>& completed);

  const std::optional<call_request>& current() const { return current_; }
  const std::vector<call_result>& completed() const { return completed_; }

 private:
  outcome begin_next();

  std::optional<call_request> current_;
  std::deque<call_request> next_;
  std::vector<call_result> completed_;
};

}  // namespace troupe
