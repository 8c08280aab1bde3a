#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "child_process.hpp"
#include "job_environment.hpp"
#include "launcher.hpp"
#include "output/job_output.hpp"

namespace troupe {

/// One rank of the job and its current process.
struct worker {
  using time_point = std::chrono::steady_clock::time_point;
  int rank = 0;
  std::uint32_t incarnation = 0;
  posix::unique_fd events;                   ///< of its current process, see trace/event_segment.hpp
  std::optional<child_process> process;      ///< none: it has ended, or is not started yet
  std::optional<time_point> drilled_at;      ///< when a drill killed it
  std::string kill_cause;                    ///< why the launcher killed it
  std::string suspected_of;                  ///< why the agent suspects it
  std::optional<time_point> kill_at;         ///< when to kill it, because it is a suspect
  std::optional<time_point> dead_by;         ///< it was killed and must have ended by then
  std::optional<time_point> start_again_at;  ///< next attempt, after descriptors or memory ran out
};

/// The processes of a job, by rank: starts them, restarts lost ones, sends signals. For one thread.
class worker_processes {
 public:
  using clock = std::chrono::steady_clock;
  /// `options`, `output` and `callbacks` must outlive it. Throws bad_input if there is no such program.
  worker_processes(const launch_options& options, const launch_callbacks& callbacks, job_output& output);

  /// Starts all ranks. Throws bad_input if the program cannot be executed.
  void start_all(const job_identity& job);
  /// Starts the next process of a rank. If descriptors or memory have run out it sets start_again_at, to be
  /// tried again; the agent's join timeout ends the job if that never succeeds.
  void restart(worker& restarted);
  /// Writes the last events of a process that was lost to a file in the folder for logs, and says where.
  /// Nothing without that folder, or if the process recorded nothing.
  void write_events(const worker& owner);
  /// No further attempts of restart().
  void cancel_restarts();
  void signal_all(int number);

  auto begin() { return workers_.begin(); }
  auto end() { return workers_.end(); }
  /// Throws std::out_of_range.
  worker& at(int rank) { return workers_.at(static_cast<std::size_t>(rank)); }
  /// Ranks that have a process or wait for restart().
  int num_alive() const;
  /// Whether it is the process of a rank that has not been reaped.
  bool is_alive(pid_t pid) const;
  /// The earliest kill_at, dead_by or start_again_at of all workers.
  std::optional<clock::time_point> next_deadline() const;

 private:
  void start(worker& started);
  void make_events(worker& owner);

  const launch_options& options_;
  const launch_callbacks& callbacks_;
  job_output& output_;
  std::string program_;
  job_identity job_;
  bool has_told_no_events_ = false;
  std::vector<worker> workers_;
};

}  // namespace troupe
