#pragma once
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "troupe/cluster/membership.hpp"
#include "troupe/job/call.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// A training step is done (on the scheduler's node only).
struct step_progress {
  std::uint64_t step = 0;  ///< steps done
  std::uint64_t target_step = 0;
  step_metrics metrics;
};

/// The job cannot go on.
struct job_failure {
  std::string cause;
};

/// The job has stopped because of a signal; `what` says what was saved.
struct job_stop {
  int signal = 0;
  std::string what;
};

/// All tensors that the call `call` gives to this process, in its order.
struct gathered_tensors {
  std::uint64_t generation = 0;
  std::uint32_t call = 0;
  std::vector<tensor> tensors;
};

/// No process keeps the tensors of the call `call`, which is over, any more.
struct gathered_gone {
  std::uint32_t call = 0;
};

/// Every process has made its last call: nobody waits for this one.
struct job_over {};

/// What the actors tell the user's thread, which waits in a call.
using client_event = std::variant<step_progress, recovery_report, call_result, gathered_tensors,
                                  gathered_gone, job_over, job_stop, job_failure>;

/// A queue from the actors to the user's thread. Thread-safe.
class client_mailbox {
 public:
  void put(client_event event);
  /// Waits for the next event. Without a limit: a call takes as long as the job; the supervisor, which
  /// watches the job's progress and membership, tells the end of either as an event.
  client_event take();
  /// Events that nobody has taken yet: who makes many of them looks whether somebody does.
  std::size_t size() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<client_event> events_;
};

}  // namespace troupe
