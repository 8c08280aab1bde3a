#pragma once
#include <sys/types.h>

#include <vector>

namespace troupe::testing {

/// A System V shared memory segment as /proc/sysvipc/shm lists it.
struct system_v_segment {
  int id = 0;
  unsigned permissions = 0;
};

/// The segments of a user.
std::vector<system_v_segment> segments_of(uid_t user);

}  // namespace troupe::testing
