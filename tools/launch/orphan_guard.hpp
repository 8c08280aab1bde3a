#pragma once
#include <sys/types.h>

#include <string>

#include "troupe/posix/unique_fd.hpp"

namespace troupe {

/// Kills the processes that were started with TROUPE_JOB_ID=`job_id`, but for this one; returns how many.
int kill_processes_of_job(const std::string& job_id);

/// Kills all processes of a job if the launcher ends without having ended them, in any process group and
/// session: every process with TROUPE_JOB_ID=`job_id` in the environment that it was started with. (The
/// signal that a process gets at the end of its parent does not reach grandchildren.) While the launcher is
/// stopped (Ctrl-Z, SIGSTOP), it stops these processes too, since nothing watches them then, and continues
/// them with it. Runs as a separate process, which ends with this object.
class orphan_guard {
 public:
  /// Throws system_failure.
  explicit orphan_guard(const std::string& job_id);
  orphan_guard(const orphan_guard&) = delete;
  orphan_guard& operator=(const orphan_guard&) = delete;
  ~orphan_guard();

 private:
  pid_t pid_ = -1;
  posix::unique_fd launcher_lives_;  ///< closed by the kernel if the launcher dies
};

}  // namespace troupe
