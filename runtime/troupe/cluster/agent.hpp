#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "troupe/cluster/membership.hpp"

namespace troupe {

struct agent_options {
  std::string address = "127.0.0.1";
  /// 0: any free port; see agent::port().
  std::uint16_t port = 0;
  std::vector<std::byte> secret;
  int world_size = 1;
  /// Members that have not joined by then end the job; the error names the missing ranks.
  std::chrono::milliseconds join_timeout = std::chrono::seconds(60);
  /// A member silent for so long is suspected.
  std::chrono::milliseconds suspect_after = std::chrono::seconds(1);
  /// False: a lost member ends the job (mpirun, started by hand). True: a launcher respawns it.
  bool survives_losses = true;
  /// How often members hear that the agent lives.
  std::chrono::milliseconds heartbeat = std::chrono::seconds(1);
  /// How long the destructor lets members that have neither left nor failed go on: where rank 0 is the agent,
  /// it may be done a little before the others.
  std::chrono::milliseconds linger = std::chrono::seconds(10);
};

/// What the agent tells its owner (the launcher). Called on the agent's thread; do not block, and do not call
/// the agent. Empty functions are not called.
struct agent_callbacks {
  /// This incarnation of `rank` must die now: it hangs or was reported unreachable. The owner kills it and
  /// calls process_lost; if it has replaced that process meanwhile, there is nothing to do. Once per process.
  std::function<void(int rank, std::uint32_t incarnation, const std::string& cause)> kill;
  std::function<void(const membership_view&)> on_view;
  std::function<void(const job_progress&)> on_progress;
  std::function<void(const recovery_report&)> on_recovered;
  /// The job has failed; the owner ends every process.
  std::function<void(const std::string& cause)> on_job_failed;
  /// The job is to stop, at the wish of the owner or of its members.
  std::function<void(int signal)> on_stop;
  /// The job has stopped because of `signal`; `what` says what was saved.
  std::function<void(int signal, const std::string& what)> on_job_stopped;
  /// Something that the user should know of, and that the agent goes on with.
  std::function<void(const std::string& what)> on_warning;
};

/// What the loss of a process means for the job.
enum class loss_outcome {
  had_left,           ///< the rank was done: nothing happens
  not_needed,         ///< it had not left, but the job was done: nothing happens
  await_replacement,  ///< the generation was raised; the rank's next incarnation may join
  job_failed          ///< the job has ended, now or before
};

/// The rendezvous and the authority over generations: one per job, in the launcher, or in rank 0 where there
/// is none. Has a thread of its own. Listens from construction; throws bad_input naming address and port if
/// it cannot.
///
/// The destructor waits for the members to leave (agent_options::linger), then closes everything.
class agent {
 public:
  virtual ~agent() = default;
  virtual std::uint16_t port() const = 0;
  /// The process of `rank` is gone for certain (waitpid or pidfd saw it). `detected` is when that was known
  /// and `died`, if known, when it was killed (a drill). Raises the generation. What the process still sent
  /// is read before. Waits for the agent's thread, for less than a millisecond as a rule.
  virtual loss_outcome process_lost(int rank, const std::string& cause,
                                    std::chrono::steady_clock::time_point detected,
                                    std::optional<std::chrono::steady_clock::time_point> died) = 0;
  /// The process of `rank` ended with exit code 0. Fails the job if others wait for it.
  virtual void process_exited(int rank) = 0;
  /// Ends the job for all members.
  virtual void fail_job(const std::string& cause) = 0;
  /// The job is to stop because of `signal`: what is done is saved, then on_job_stopped comes. Returns the
  /// ranks that hear of it here; the processes of the others know nothing of the job.
  virtual std::vector<int> stop_job(int signal) = 0;
  /// What the process of `rank`, which has ended, said it fails with; empty: it said nothing. What it still
  /// sent is read before: waits until it has said something or its connection has ended, but `at_most`, since
  /// a process that it started may keep the connection open.
  virtual std::string failure_of(int rank, std::chrono::milliseconds at_most) = 0;
};

std::unique_ptr<agent> make_agent(const agent_options& options, agent_callbacks callbacks);

}  // namespace troupe
