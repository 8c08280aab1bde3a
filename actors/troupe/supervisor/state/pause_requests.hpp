#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "troupe/job/pause.hpp"

namespace troupe::actors::supervisor {

/// A program's requests to pause its job, which are passed on to the scheduler one at a time, and the newest
/// known state. A request is based on that state: each is carried out once, whatever fails.
class pause_requests {
 public:
  struct versioned_request {
    std::uint64_t based_on = 0;  ///< version of the known state
    job::pause_request request;
  };

  /// `request.id` must be unique among the requests of this rank's processes.
  void add(const job::pause_request& request) { waiting_.push_back(request); }
  /// The request to send now; none: there is none, or the one sent last has not been answered.
  std::optional<versioned_request> next();
  /// A process or the scheduler tells the state. False: an older one than is known.
  bool learn(const job::pause_state& told);
  /// The scheduler of the last generation may have carried the request out, or not: the state that this one
  /// tells says so, and next() repeats it.
  void begin_generation() { based_on_.reset(); }

  const job::pause_state& known() const { return known_; }
  /// The requests that were carried out since this was called last, with the versions that they have made.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> take_carried_out() {
    return std::exchange(carried_out_, {});
  }

 private:
  job::pause_state known_;
  std::deque<job::pause_request> waiting_;  ///< requests that are not carried out yet, in their order
  std::optional<std::uint64_t> based_on_;   ///< version with which the first of them was sent
  /// Id of each request, and the version that it made.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> carried_out_;
};

}  // namespace troupe::actors::supervisor
