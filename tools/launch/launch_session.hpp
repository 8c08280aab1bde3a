#pragma once
#include <map>
#include <optional>
#include <string>

#include "adopted_processes.hpp"
#include "job_outcome.hpp"
#include "launcher.hpp"
#include "memory_kills.hpp"
#include "output/job_output.hpp"
#include "signal_guard.hpp"
#include "troupe/cluster/agent.hpp"
#include "troupe/posix/posted_calls.hpp"
#include "troupe/recovery/process_restarts.hpp"
#include "worker_processes.hpp"

namespace troupe {

/// One run of a job: a single poll loop over processes, their output, signals, and the agent's callbacks,
/// which the agent's thread posts to `posted_`.
class launcher::session {
 public:
  session(launch_options options, launch_callbacks callbacks);
  int run();
  void kill(int rank);
  int stopped_by() const { return stop_signal_; }

 private:
  using clock = std::chrono::steady_clock;
  /// running; stopping: a stop was requested, members save the state; told: the agent has notified the
  /// members of the job's end, and they end by themselves; terminated: SIGTERM was sent; killed: SIGKILL was
  /// sent. Each phase after running has a deadline, after which the next one begins.
  enum class phase { running, stopping, told, terminated, killed };

  void loop_once(signal_guard& signals);
  int poll_timeout_ms() const;
  void on_signal(int number);
  void on_child_end(worker& child);
  void on_loss(worker& lost, const exit_status& status, clock::time_point detected);
  void on_end_while_ending(const exit_status& status);
  void on_deadline();
  void on_worker_deadlines(worker& checked);
  void kill_suspect(worker& suspect);
  void abandon(worker& abandoned);
  void begin_stopping(int signal);
  void kill_stopping();
  void on_job_stopped(int signal, const std::string& what);
  void end_job(phase next, std::chrono::milliseconds allowed);
  void fail(const std::string& line, int exit_code);

  cluster::agent_callbacks make_agent_callbacks();
  void on_kill(int rank, std::uint32_t incarnation, const std::string& cause);
  void on_progress(const cluster::job_progress& progress);
  void on_recovered(const cluster::recovery_report& report);
  std::vector<cluster::member_loss> losses_of(const cluster::recovery_report& report) const;
  std::string stopped_processes();
  void on_job_failed(const std::string& cause, failure_kind kind);
  void run_drill(const drill& wanted);

  void end_left_behind();
  int finish();

  launch_options options_;
  launch_callbacks callbacks_;
  posix::posted_calls posted_;  ///< by the agent's thread, and by kill()

  job_output output_;
  worker_processes workers_;
  std::unique_ptr<cluster::agent> agent_;
  recovery::process_restarts restarts_;
  std::string job_id_;

  phase phase_ = phase::running;
  std::optional<clock::time_point> deadline_;  ///< when the present phase must be over; none: never
  job_outcome outcome_;
  int stop_signal_ = 0;
  clock::time_point stop_signalled_;  ///< when stop_signal_ was set
  std::uint64_t step_ = 0;
  std::uint64_t newest_step_ = 0;         ///< the highest step done, including rolled back ones
  std::uint64_t num_advances_ = 0;        ///< steps done, again too, and recoveries
  std::uint64_t generation_of_step_ = 0;  ///< in which the newest step was done
  memory_kills memory_kills_;
  bool had_view_ = false;
  const bool adopts_processes_ = adopts_processes();
  std::map<int, std::string> lost_ranks_;  ///< since the last recovery, with the cause
  std::uint64_t step_at_loss_ = 0;
};

}  // namespace troupe
