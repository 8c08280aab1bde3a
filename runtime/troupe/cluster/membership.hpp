#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "troupe/collective/group/store.hpp"
#include "troupe/transport/transport.hpp"

namespace troupe {

/// One process of the job as the others know it.
struct member {
  int rank = 0;
  std::uint32_t incarnation = 0;  ///< 0 for the first process of this rank, one more for each respawn
  std::int64_t pid = 0;
  std::string host;
  std::string
      numeric_class;  ///< ISA cap and library versions: see ARCHITECTURE 4. Must be equal in all members.
  node_address address;
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

/// Milestones of a recovery that the scheduler reports; the agent puts its clock's time to them.
enum class recovery_phase : std::uint8_t { restored = 1, rebuilt = 2, replayed = 3 };

/// What the scheduler tells about the job, for progress lines and drills.
struct job_progress {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;         ///< steps done
  std::uint64_t total_steps = 0;  ///< of the running fit; 0 otherwise
  double loss = 0;
  bool operator==(const job_progress&) const = default;
};

/// Seconds of each phase of a recovery on the agent's clock; `total_s` from the loss to the end of the
/// replay.
struct recovery_report {
  std::uint64_t generation = 0;
  member_loss loss;
  double detect_s = 0;   ///< from the death (or the drill's kill) to the agent knowing it
  double fence_s = 0;    ///< to the process being gone and the generation raised
  double quiesce_s = 0;  ///< to the last survivor's acknowledgement
  double respawn_s =
      0;  ///< to the respawned process having joined (overlaps quiesce; 0 if it joined earlier)
  double restore_s = 0;  ///< to every stage having its state
  double rebuild_s = 0;  ///< to the first step being granted
  double replay_s = 0;   ///< to the end of the step that was interrupted
  double total_s = 0;
};

/// Who is asked to stop. member: a signal came to one process, and the others may know nothing of it. job:
/// all of them are to stop.
enum class stop_scope : std::uint8_t { member = 1, job = 2 };

/// How a node hears of membership. Called on the client's own thread, one call at a time; do not block.
class membership_events {
 public:
  virtual ~membership_events() = default;
  /// Generation `generation` begins: stop computing, then acknowledge with membership::quiesced.
  virtual void on_fence(std::uint64_t generation, const std::vector<member_loss>& losses) = 0;
  /// Every member has quiesced or joined.
  virtual void on_view(const membership_view& view) = 0;
  /// A recovery is complete; sent to every member.
  virtual void on_recovered(const recovery_report& report) = 0;
  /// A member has left, so every member had made its last call: there is nothing more to wait for but to
  /// leave.
  virtual void on_over() = 0;
  /// The job cannot go on. `cause` says why and what to do.
  virtual void on_job_end(const std::string& cause) = 0;
  /// The job is to stop because of `signal`: the scheduler saves what is done and calls membership::stopped.
  /// Comes again after each view until it has.
  virtual void on_stop(int signal) = 0;
  /// The job has stopped; `what` says what was saved. Nothing follows.
  virtual void on_job_stopped(int signal, const std::string& what) = 0;
};

/// A node's side of the membership protocol. Thread-safe; calls queue and return.
class membership {
 public:
  virtual ~membership() = default;
  /// Enters the job. The first view comes when everyone has joined.
  virtual void join(const member& self) = 0;
  /// This node has stopped for `generation`; `address` is its new address.
  virtual void quiesced(std::uint64_t generation, const node_address& address) = 0;
  /// Asks for a new generation although no process was lost: a local actor failed.
  virtual void request_generation(std::uint64_t current, const std::string& cause) = 0;
  /// This node cannot reach `rank`. The agent decides: a suspect is killed, never merely ignored.
  virtual void suspect(int rank, const std::string& cause) = 0;
  virtual void report(const job_progress& progress) = 0;
  virtual void report(std::uint64_t generation, recovery_phase phase) = 0;
  /// This node ends the job for all: a failure that starting again would not cure.
  virtual void fail_job(const std::string& cause) = 0;
  /// Somebody wants this process or the whole job to stop. One member alone stops the job only where a lost
  /// member ends it; under a launcher it takes all members, else the process is to end by itself.
  virtual void request_stop(int signal, stop_scope scope) = 0;
  /// The scheduler has saved what was done: the job ends for all members.
  virtual void stopped(const std::string& what) = 0;
  /// An error ends this process, `what` says which; empty: it is not known yet. Until it has ended, nobody
  /// suspects it for a moment, and what it suspects others of does not count.
  virtual void failing(const std::string& what) = 0;
  /// This node is done, and knows that all others are: their last call was made together. Losing any of them
  /// from here on is no failure.
  virtual void leave() = 0;
  /// Bytes by key that the members leave for each other, as long as the job lasts. Usable after join.
  virtual store& keys() = 0;
};

}  // namespace troupe
