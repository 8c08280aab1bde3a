#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "troupe/cluster/membership.hpp"
#include "troupe/config/stop_signals.hpp"

namespace troupe {

/// Fault injection of the option --drill: kill `rank` as soon as `step` steps are done, at least 1.
struct drill {
  int rank = 0;
  std::uint64_t step = 0;
};
/// From "RANK@STEP". Throws bad_input.
drill parse_drill(const std::string& text);

struct launch_options {
  std::vector<std::string> command;  ///< program and arguments
  int num_processes = 1;
  /// How many processes may be started again within `restart_window`, all ranks together. 0: the first loss
  /// ends the job.
  int max_restarts = 16;
  std::chrono::milliseconds restart_window = std::chrono::hours(1);
  std::vector<drill> drills;
  std::string master_addr = "127.0.0.1";
  std::uint16_t master_port = 0;  ///< 0: any free one
  std::chrono::milliseconds join_timeout = std::chrono::seconds(60);
  std::chrono::milliseconds suspect_after = std::chrono::seconds(1);  ///< at least least_suspect_after
  /// How long a job that was sent SIGTERM, SIGINT or SIGHUP may take to save its work and end.
  std::chrono::milliseconds grace = std::chrono::seconds(20);
  /// Further signals that stop the job, also in its processes.
  config::stop_signals more_signals;
  /// How long the processes of a job that has stopped, its state saved, may take to end by themselves.
  std::chrono::milliseconds time_to_end_stopped = std::chrono::seconds(5);
  /// Between SIGTERM and SIGKILL when a failed job is ended.
  std::chrono::milliseconds time_to_end = std::chrono::seconds(5);
  /// How long a killed process may take to end. After that (it hangs in the kernel) the job ends without it.
  std::chrono::milliseconds time_to_die = std::chrono::seconds(10);
  /// How signals are sent to processes, for tests; empty: kill(2).
  std::function<int(pid_t, int)> send_signal;
  std::filesystem::path log_dir;  ///< empty: none. Otherwise rank-RANK.INCARNATION.out and .err are written
                                  ///< there, and events-RANK.INCARNATION.bin of processes that were lost
  /// That each thread of a process keeps, of 64 bytes each, in memory that outlives the process; 0: none.
  std::size_t events_per_thread = std::size_t{1} << 14;
  bool json = false;  ///< rank 0's standard output passes as it is, recoveries are JSON lines, all else goes
                      ///< to errors
  int output_fd = 1;
  int error_fd = 2;
};

/// Called on the thread of run(). Empty functions are not called.
struct launch_callbacks {
  std::function<void(int rank, std::uint32_t incarnation, pid_t)> on_started;
  std::function<void(const cluster::job_progress&)> on_progress;
  std::function<void(const cluster::recovery_report&)> on_recovered;
};

/// Starts the processes of a job on this host, hosts its agent, watches them, restarts lost ones, and ends
/// them all when the job cannot continue.
class launcher {
 public:
  /// Throws bad_input for options that cannot be used.
  explicit launcher(launch_options options, launch_callbacks callbacks = {});
  ~launcher();

  /// Runs the job. Returns
  /// - 0 if every process ended with 0, or was lost when the job's work was done
  /// - 128 + signal if the job was asked to stop
  /// - else the exit code of the first that failed (128 + signal), or 1 if the job failed as a whole
  /// - if only the output of the job could not be written: 1, or 128 + SIGPIPE if its reader has closed its
  ///   end
  ///
  /// Throws bad_input if the program or the port cannot be used.
  ///
  /// Call it once, on a thread that stays alive: the processes are killed when it ends. Meanwhile it handles
  /// SIGINT, SIGTERM, SIGHUP and `more_signals` (blocked in the calling thread; block them in other threads
  /// before), but for those that are ignored, and ignores SIGPIPE.
  int run();
  /// After run(): the signal that asked the job to stop; 0: none.
  int stopped_by() const;

  /// Kills the current process of `rank`, as a drill does, while run() runs; its recovery is timed from here.
  /// Nothing happens if there is none, or if the job is ending. Thread-safe, and returns at once. Throws
  /// std::out_of_range.
  void kill(int rank);

 private:
  class session;
  std::unique_ptr<session> session_;
};

}  // namespace troupe
