#pragma once
#include <caf/actor.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/result.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "troupe/job/call.hpp"
#include "troupe/job/call_log.hpp"
#include "troupe/messages/scheduler.hpp"
#include "troupe/messages/stage.hpp"
#include "troupe/recovery/inventory.hpp"
#include "troupe/supervisor/generation_runner.hpp"
#include "troupe/supervisor/state/pause_requests.hpp"

namespace troupe::actors::supervisor {

/// The calls of one process's program: the current one, those queued behind it, and the results of earlier
/// ones.
///
/// Usually there is one call at a time. A program that leaves a call by an exception of a callback may make
/// the next call while the first still runs; it is queued and starts when the first is over.
class call_queue {
 public:
  /// Bound of queued calls; a correct program blocks in each call and queues at most a few.
  static constexpr std::size_t max_waiting = 1024;
  explicit call_queue(std::shared_ptr<job::call_log> completed = std::make_shared<job::call_log>())
      : completed_(std::move(completed)) {}

  /// What the caller must do after an event.
  struct outcome {
    std::vector<job::call_result> told;  ///< results to send to the user's thread, in this order
    bool begins = false;                 ///< the current call has changed and must be announced
    bool operator==(const outcome&) const = default;
  };

  /// The program makes a call. If its result is known, it is returned at once. Throws std::length_error if
  /// more than max_waiting calls would be queued.
  outcome enter(const job::call_request& request);
  /// A call is complete in all processes. Idempotent. `was_missed`: it was over before the program made it.
  outcome finished(const job::call_result& result, bool was_missed = false);

  const std::optional<job::call_request>& current() const { return current_; }
  /// Shared with the scheduler of this process, which may append a result before it sends call_finished.
  const std::shared_ptr<job::call_log>& completed() const { return completed_; }

 private:
  outcome begin_next();

  std::optional<job::call_request> current_;
  std::deque<job::call_request> next_;
  std::shared_ptr<job::call_log> completed_;
};

/// Announces a program's calls to the scheduler of each generation, with the copies that the process's
/// children hold, and passes results back to the program.
class program_calls {
 public:
  /// All outlive this object, and so does `completed` the schedulers that share it.
  program_calls(caf::event_based_actor* self, const supervisor_options& options,
                const generation_runner& generations, const process_connections& connections,
                job_children& children, const pause_requests& pauses,
                std::shared_ptr<job::call_log> completed);

  void enter(const job::call_request& request);
  /// If this process has heard of the next generation, that one tells the result again.
  caf::result<void> finish(const messages::call_finished& finished);
  /// The program repeats a call that is over: its tensors are requested from caches, in each generation until
  /// the next call.
  void fetch(const job::call_request& request);
  bool is_in_barrier() const { return queue_.current() && queue_.current()->kind == job::call_kind::barrier; }
  messages::known_results results_from(std::uint64_t first) const {
    return {queue_.completed()->piece(first)};
  }

  /// The process is in a new generation, which has another scheduler.
  void begin_generation();
  /// Nothing of the previous job was announced for the next one.
  void forget_job();
  /// This process holds no replicas any more.
  void lose_replicas();

 private:
  void follow(const call_queue::outcome& outcome);
  void announce();
  void request_inventory(const caf::actor& holder);
  void on_held_parts(const messages::held_parts& held);
  void send_entered();
  void request_cached();

  // constant
  caf::event_based_actor* self_;
  const supervisor_options& options_;
  const process_generation& generation_;
  const process_connections& connections_;
  job_children& children_;
  const pause_requests& pauses_;

  call_queue queue_;
  std::optional<job::call_request> fetched_;  ///< the call whose tensors are requested from caches
  std::uint64_t described_in_ = 0;            ///< the generation whose scheduler has got the job description
  /// The copies this process holds, until they are sent (in generation inventory_in_; requested in
  /// asked_in_).
  recovery::process_inventory inventory_;
  std::uint64_t inventory_in_ = 0, asked_in_ = 0;
  std::uint64_t inquiry_ = 0;  ///< number of the newest inventory request; replies to older ones are dropped
  std::size_t num_unanswered_ = 0;
};

}  // namespace troupe::actors::supervisor
