#pragma once
#include <cstdint>
#include <map>

namespace troupe::posix {

/// Time in which threads of this process could have run and waited for a core, since others had them all:
/// what Linux counts in /proc/self/task/*/schedstat. Not thread-safe.
class core_wait {
 public:
  /// Nanoseconds, added up over threads, from the first call on; never less than before. Threads that end
  /// between two calls lose what they have waited since the first of the two. 0 where the kernel does not
  /// count.
  std::uint64_t total_ns();

 private:
  std::map<int, std::uint64_t> by_thread_;  ///< as of the newest call
  std::uint64_t total_ns_ = 0;
  bool was_called_ = false;
};

}  // namespace troupe::posix
