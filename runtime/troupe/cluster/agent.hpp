#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "troupe/cluster/membership.hpp"

namespace troupe::cluster {

/// Interval of the heartbeats from each member to the agent.
constexpr std::chrono::milliseconds member_heartbeat{100};
/// The least agent_options::suspect_after: twice that interval, so that a member whose heartbeat comes a
/// whole interval late is not suspected. The agent looks eight times within suspect_after, and more often
/// than heartbeats come.
constexpr std::chrono::milliseconds least_suspect_after = 2 * member_heartbeat;
/// Throws bad_input, which names --suspect-after, for less than that.
void check_suspect_after(std::chrono::milliseconds suspect_after);

/// What to tell the user when the agent goes on after a time in which it did not run; empty: too short.
std::string text_of_gap(std::chrono::steady_clock::duration gap);

struct agent_options {
  std::string address = "127.0.0.1";
  /// Members may be on other hosts, where a name may have another address than here, or no address yet: a
  /// name without one is waited for until join_timeout.
  bool has_other_hosts = false;
  /// 0: any free port; see agent::port().
  std::uint16_t port = 0;
  std::vector<std::byte> secret;
  int world_size = 1;
  /// Members that have not joined by then end the job; the error names the missing ranks. A replacement of a
  /// lost member is killed instead, so that its launcher starts another.
  std::chrono::milliseconds join_timeout = std::chrono::seconds(60);
  /// A member that sends no heartbeat for this time is suspected. At least least_suspect_after.
  std::chrono::milliseconds suspect_after = std::chrono::seconds(1);
  /// True: a launcher restarts lost processes. False: a lost member ends the job (mpirun, started by hand).
  bool replaces_lost_members = true;
  /// Interval of the heartbeats from the agent to the members.
  std::chrono::milliseconds heartbeat = std::chrono::seconds(1);
  /// How long the destructor waits for members to leave. Rank 0, where it hosts the agent, may be done before
  /// the others.
  std::chrono::milliseconds linger = std::chrono::seconds(10);
};

/// Callbacks from the agent to its owner (the launcher), on the agent's thread. They must not block nor call
/// the agent. Empty functions are not called.
struct agent_callbacks {
  /// Kill this incarnation of `rank`, which hangs, was reported unreachable or has not joined in time, then
  /// call process_lost. If the owner has replaced that process already, do nothing. Called once per member.
  std::function<void(int rank, std::uint32_t incarnation, const std::string& cause)> kill;
  std::function<void(const membership_view&)> on_view;
  std::function<void(const job_progress&)> on_progress;
  std::function<void(const recovery_report&)> on_recovered;
  /// The job has failed; the owner ends every process.
  std::function<void(const std::string& cause, failure_kind kind)> on_job_failed;
  /// The job is to stop because of `signal`, as the owner or its members requested.
  std::function<void(int signal)> on_stop;
  /// The job has stopped because of `signal`; `summary` says what was saved.
  std::function<void(int signal, const std::string& summary)> on_job_stopped;
  /// A problem that the agent survives, for the user.
  std::function<void(const std::string& message)> on_warning;
};

/// What the loss of a process means for the job.
enum class loss_outcome {
  had_left,           ///< the rank had left the job: nothing happens
  not_needed,         ///< the rank had not left, but the job was done: nothing happens
  came_too_late,      ///< the job was done before this incarnation of the rank had joined: nothing happens
  await_replacement,  ///< the generation was raised; the rank's next incarnation may join
  job_failed          ///< the job has ended, now or before
};

/// The error that ends a member, as it reports it.
struct reported_failure {
  std::string message;
  failure_kind kind = failure_kind::error;
};

/// The job's rendezvous server (as torchrun's c10d store and elastic agent in one): it admits members,
/// detects lost ones by heartbeats, decides the generation, and hosts the key-value store. One per job, in
/// the launcher, or in rank 0 of a job without launcher. Runs a thread. Listens from construction on; throws
/// bad_input naming address and port if it cannot, and for a suspect_after that is too short.
///
/// The destructor waits for the members to leave (agent_options::linger), then closes everything.
class agent {
 public:
  virtual ~agent() = default;
  virtual std::uint16_t port() const = 0;
  /// The process of `rank` has ended (seen by waitpid or pidfd) at `detected`; `died`, if known, is when it
  /// was killed (fault injection). Reads what the process had sent, then raises the generation. Blocks until
  /// the agent's thread has done so, usually less than a millisecond.
  virtual loss_outcome process_lost(int rank, const std::string& cause,
                                    std::chrono::steady_clock::time_point detected,
                                    std::optional<std::chrono::steady_clock::time_point> died) = 0;
  /// The process of `rank` ended with exit code 0. Fails the job if other members still need it.
  virtual void process_exited(int rank) = 0;
  /// Ends the job for all members.
  virtual void fail_job(const std::string& cause) = 0;
  /// Stops the job because of `signal`: the members save the state, then on_job_stopped is called. Returns
  /// the ranks that the agent notifies; the processes of other ranks have not joined, signal them directly.
  virtual std::vector<int> stop_job(int signal) = 0;
  /// What the ended process of `rank` reported (membership::failing); its message is empty: nothing. Blocks
  /// until the message has arrived or the connection has ended, at most `at_most`, since a child of the
  /// process may keep the connection open.
  virtual reported_failure failure_of(int rank, std::chrono::milliseconds at_most) = 0;
};

std::unique_ptr<agent> make_agent(const agent_options& options, agent_callbacks callbacks);

}  // namespace troupe::cluster
