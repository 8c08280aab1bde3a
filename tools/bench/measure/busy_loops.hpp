#pragma once
#include <thread>
#include <vector>

namespace troupe::bench {

/// While it lives, so many threads of this process count without pause: other work on the same machine for
/// the processes that are measured beside them. The destructor waits for them.
class busy_loops {
 public:
  explicit busy_loops(int count);

 private:
  std::vector<std::jthread> threads_;
};

}  // namespace troupe::bench
