#pragma once
#include <sys/types.h>

#include <functional>

namespace troupe {

/// Whether this process becomes the parent of processes whose own one has ended: the first process of a
/// container, or a subreaper.
bool adopts_processes();

/// Reaps adopted processes that have ended, which would stay as zombies. `is_own`: those that are waited for
/// elsewhere.
void reap_adopted(const std::function<bool(pid_t)>& is_own);

}  // namespace troupe
