#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Rank and rendezvous of this process, from the variables that its launcher set.
struct launch_environment {
  int rank = 0;
  int world_size = 1;
  /// `rank` where the launcher does not say.
  int local_rank = 0;
  std::string master_addr = "127.0.0.1";
  std::uint16_t master_port = 29500;
  /// Equal in all processes of the job; "host:port" of the master where not given.
  std::string job_id;
  /// TROUPE_JOB_SECRET; empty: see messaging/job_secret.
  std::string secret_hex;
  /// TROUPE_INCARNATION: how often the launcher has respawned this rank.
  std::uint32_t incarnation = 0;
  /// TROUPE_AGENT=1: an agent listens at master_addr:master_port; otherwise rank 0 is the agent.
  bool launched_by_troupe = false;
  /// TROUPE_STOP_SIGNALS: the launcher's --stop-signals, which count for the processes too.
  std::string stop_signals;
  /// TROUPE_MAX_RESTARTS: how many processes the launcher replaces at most; none: not known.
  std::optional<int> max_restarts;
  /// Where files of this user and this boot belong, the first that can be used: XDG_RUNTIME_DIR, TMPDIR,
  /// /tmp. A folder that is named may be missing or another user's, as after sudo and in jobs of cron, Slurm
  /// and containers.
  std::vector<std::string> runtime_folders = {"/tmp"};
  /// "troupe launch", "RANK/WORLD_SIZE", "Open MPI", "Slurm"
  std::string source;
};

using environment_reader = std::function<std::optional<std::string>(const std::string& name)>;
/// The process environment. The only caller of getenv in the project.
environment_reader process_environment();

/// None when no launcher variable is set: a job of one process. Understands
/// RANK/WORLD_SIZE/LOCAL_RANK/MASTER_ADDR/ MASTER_PORT, Open MPI (OMPI_COMM_WORLD_*) and Slurm (SLURM_PROCID,
/// SLURM_STEP_NUM_TASKS, SLURM_LOCALID, with the SLURM_STEP_ID of a step that `srun` has started), in this
/// order of precedence. MASTER_ADDR and MASTER_PORT count with all of them. An empty variable counts as not
/// set. Throws bad_input for half of a set (RANK without WORLD_SIZE), for text that is no number, for ranks
/// out of range, for more than 65536 processes, and for a job on several hosts without MASTER_ADDR.
std::optional<launch_environment> read_launch_environment(const environment_reader& read);

}  // namespace troupe
