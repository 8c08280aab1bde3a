#pragma once
#include <string>

namespace troupe::posix {

/// The limits of System V shared memory of this host or container (IPC namespace), and what is in use.
struct sysv_limits {
  unsigned long max_segments = 0;       ///< kernel.shmmni
  unsigned long max_segment_bytes = 0;  ///< kernel.shmmax
  unsigned long max_pages = 0;          ///< kernel.shmall
  unsigned long used_segments = 0, used_pages = 0;
};
sysv_limits read_sysv_limits();
/// "1 of 4096 segments (kernel.shmmni) and ... are in use"; what to raise.
std::string to_text(const sysv_limits& limits);

}  // namespace troupe::posix
