#pragma once
#include <functional>
#include <mutex>
#include <vector>

#include "troupe/posix/wake_event.hpp"

namespace troupe {

/// What other threads want done on the thread that polls fd().
class posted_calls {
 public:
  /// Any thread: `call` runs at the next run_all(), after all that were posted before.
  void post(std::function<void()> call);

  /// Readable when there may be something to run.
  int fd() const { return wake_.fd(); }
  /// The polling thread: runs what was posted so far, and lets fd() be silent again.
  void run_all();

 private:
  wake_event wake_;
  std::mutex mutex_;
  std::vector<std::function<void()>> calls_;
};

}  // namespace troupe
