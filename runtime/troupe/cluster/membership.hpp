#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "troupe/collective/rendezvous/store.hpp"
#include "troupe/job_error/job_errors.hpp"
#include "troupe/transport/transport.hpp"

namespace troupe::cluster {

/// One process of the job, as it describes itself to the others.
struct member {
  int rank = 0;
  std::uint32_t incarnation = 0;  ///< 0 for the first process of this rank, one more for each respawn
  std::int64_t pid = 0;
  std::string host;
  /// What the bits depend on here, as ops/numeric_class.hpp says. Must be equal in all members.
  std::string numeric_class;
  transport::process_address address;
  bool operator==(const member&) const = default;
};

/// The members of one generation, in rank order; complete: as many as the world size.
struct membership_view {
  std::uint64_t generation = 0;
  std::vector<member> members;
  bool operator==(const membership_view&) const = default;
};

/// Why a generation ended for one rank. `rank` is -1 when no process was lost (an actor failed and asked).
struct member_loss {
  int rank = -1;
  std::string cause;  ///< "killed by SIGKILL", "exit code 3", "no heartbeat for 1.0 s", ...
  bool operator==(const member_loss&) const = default;
};

/// Milestones of a recovery that the scheduler reports; the agent adds the times by its own clock.
enum class recovery_phase : std::uint8_t { restored = 1, rebuilt = 2, replayed = 3 };

/// Progress of the job, reported by the scheduler; for progress output and fault injection.
struct job_progress {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;         ///< steps done so far
  std::uint64_t total_steps = 0;  ///< of the running fit; 0 otherwise
  double loss = 0;
  bool operator==(const job_progress&) const = default;
};

/// Seconds of each phase of a recovery on the agent's clock; `total_s` from the loss to the end of the
/// replay.
struct recovery_report {
  std::uint64_t generation = 0;
  member_loss loss;
  double detect_s = 0;   ///< from the death (or the injected kill) to its detection by the agent
  double fence_s = 0;    ///< to the process being gone and the generation raised
  double quiesce_s = 0;  ///< to the last survivor's acknowledgement
  /// To the respawned process having joined; overlaps quiesce_s, 0 if it joined earlier.
  double respawn_s = 0;
  double restore_s = 0;  ///< to every stage having its state
  double rebuild_s = 0;  ///< to the first step being granted
  double replay_s = 0;   ///< to the end of the step that was interrupted
  double total_s = 0;
};

/// Who is to stop. member: one process got a signal, the others may not have. job: all processes.
enum class stop_scope : std::uint8_t { member = 1, job = 2 };

/// Callbacks of membership. Called on the client's thread, one at a time; they must not block.
class membership_events {
 public:
  virtual ~membership_events() = default;
  /// Generation `generation` begins: stop computing, then acknowledge with membership::quiesced.
  virtual void on_fence(std::uint64_t generation, const std::vector<member_loss>& losses) = 0;
  /// Every member has quiesced or joined.
  virtual void on_view(const membership_view& view) = 0;
  /// A recovery is complete; sent to every member.
  virtual void on_recovered(const recovery_report& report) = 0;
  /// A member has left, so every member has made its last call: leave as well.
  virtual void on_job_done() = 0;
  /// The job has failed. `cause` says why and what to do.
  virtual void on_job_failed(const std::string& cause, failure_kind kind) = 0;
  /// The job is to stop because of `signal`: the scheduler saves the state and calls membership::stopped.
  /// Repeated after each view until then.
  virtual void on_stop(int signal) = 0;
  /// The job has stopped; `summary` says what was saved. No event follows.
  virtual void on_job_stopped(int signal, const std::string& summary) = 0;
};

/// A process's client of the membership protocol. Thread-safe; functions queue a message and return.
class membership {
 public:
  virtual ~membership() = default;
  /// Joins the job. The first view follows when all ranks have joined.
  virtual void join(const member& self) = 0;
  /// Actions of this process go on, which is to stop for `generation`. It says so now and then: without word
  /// for join_timeout, at least 5 s, it is suspected.
  virtual void still_computing(std::uint64_t generation) = 0;
  /// This process has stopped for `generation`; `address` is its new address.
  virtual void quiesced(std::uint64_t generation, const transport::process_address& address) = 0;
  /// Asks for a new generation although no process was lost: a local actor failed.
  virtual void request_generation(std::uint64_t current, const std::string& cause) = 0;
  /// This process cannot reach `rank`. The agent decides: a suspect is killed, never merely ignored.
  virtual void suspect(int rank, const std::string& cause) = 0;
  virtual void report(const job_progress& progress) = 0;
  virtual void report(std::uint64_t generation, recovery_phase phase) = 0;
  /// Ends the job in all processes, because of a failure that a restart does not cure.
  virtual void fail_job(const std::string& cause, failure_kind kind = failure_kind::error) = 0;
  /// Requests a stop of this process or of the whole job. With scope member the job stops if all members
  /// request it, or if the loss of this one would end the job anyway (no launcher); else this process ends
  /// alone.
  virtual void request_stop(int signal, stop_scope scope) = 0;
  /// The scheduler has saved the state: the job ends for all members.
  virtual void stopped(const std::string& summary) = 0;
  /// This process is about to end with the error `message`; empty: not known yet. For some seconds the agent
  /// does not suspect it, and ignores its suspicions of others.
  virtual void failing(const std::string& message, failure_kind kind = failure_kind::error) = 0;
  /// This process is done, and so are all others, since all make their last call together. The loss of a
  /// member is no failure from now on.
  virtual void leave() = 0;
  /// The job's key-value store. Usable after join.
  virtual collective::store& keys() = 0;
};

}  // namespace troupe::cluster
