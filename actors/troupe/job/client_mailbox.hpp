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

namespace troupe::actors::job {

/// A training step is done. Only the scheduler's process gets it.
struct step_progress {
  std::uint64_t step = 0;  ///< steps done so far
  std::uint64_t target_step = 0;
  program::step_metrics metrics;
  std::uint64_t replays_from = 0;  ///< as call_result::replays_from
};

/// The job has failed.
struct job_failure {
  std::string cause;
  failure_kind kind = failure_kind::error;
};

/// The job has stopped because of a signal; `summary` says what was saved.
struct job_stop {
  int signal = 0;
  std::string summary;
};

/// All tensors that the call `call` delivers to this process, by index.
struct gathered_tensors {
  std::uint64_t generation = 0;
  std::uint32_t call = 0;
  std::vector<tensor> tensors;
};

/// The call `call` is over and no process has its tensors in its cache any more.
struct gathered_unavailable {
  std::uint32_t call = 0;
};

/// Every process has made its last call, so this process need not wait for any.
struct job_done {};

/// Events from the actors to the user's thread, which waits in a call.
using client_event = std::variant<step_progress, cluster::recovery_report, call_result, gathered_tensors,
                                  gathered_unavailable, job_done, job_stop, job_failure>;

/// A queue from the actors to the user's thread. Thread-safe.
class client_mailbox {
 public:
  void put(client_event event);
  /// Blocks until the next event, without a time limit: the supervisor watches progress and membership, and
  /// reports the end of the job as an event.
  client_event take();
  /// Number of events not taken yet. Producers of many events use it to limit the queue.
  std::size_t size() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<client_event> events_;
};

}  // namespace troupe::actors::job
