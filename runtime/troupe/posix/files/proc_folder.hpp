#pragma once

namespace troupe::posix {

/// Whether /proc is there and shows processes by the ids that they have in this process's PID namespace. A
/// namespace that was made without mounting one (`unshare --pid` without --mount-proc) sees that of another:
/// what is found there by a process id is of another process. Only system calls: for use after fork() too.
bool proc_is_of_this_namespace();

}  // namespace troupe::posix
