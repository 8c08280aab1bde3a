#include "troupe/posix/sysv_limits.hpp"

#include <sys/shm.h>

namespace troupe::posix {

sysv_limits read_sysv_limits() {
  sysv_limits limits;
  shminfo most{};
  shm_info used{};
  if (::shmctl(0, IPC_INFO, reinterpret_cast<shmid_ds*>(&most)) >= 0) {
    limits.max_segments = most.shmmni;
    limits.max_segment_bytes = most.shmmax;
    limits.max_pages = most.shmall;
  }
  if (::shmctl(0, SHM_INFO, reinterpret_cast<shmid_ds*>(&used)) >= 0) {
    limits.used_segments = static_cast<unsigned long>(used.used_ids);
    limits.used_pages = used.shm_tot;
  }
  return limits;
}

std::string to_text(const sysv_limits& limits) {
  return "of System V shared memory, " + std::to_string(limits.used_segments) + " of " +
         std::to_string(limits.max_segments) + " segments (kernel.shmmni) and " +
         std::to_string(limits.used_pages) + " of " + std::to_string(limits.max_pages) +
         " pages (kernel.shmall) are in use, and a segment has at most " +
         std::to_string(limits.max_segment_bytes) +
         " bytes (kernel.shmmax). Each process takes two segments of about 4 MB: raise the limit with "
         "sysctl, or "
         "remove segments that ended programs have left (`ipcs -m`, `ipcrm`)";
}

}  // namespace troupe::posix
