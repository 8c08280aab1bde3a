#pragma once
#include <functional>
#include <mutex>
#include <vector>

#include "troupe/posix/wake_event.hpp"

namespace troupe::posix {

/// A queue of functions that other threads post to the thread that polls fd().
class posted_calls {
 public:
  /// Any thread: `call` runs at the next run_all(), in the order posted.
  void post(std::function<void()> call);

  /// Readable while functions may be queued.
  int fd() const { return wake_.fd(); }
  /// The polling thread: runs the functions posted so far and clears fd().
  void run_all();

 private:
  wake_event wake_;
  std::mutex mutex_;
  std::vector<std::function<void()>> calls_;
};

}  // namespace troupe::posix
