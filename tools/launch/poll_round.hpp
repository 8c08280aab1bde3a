#pragma once
#include <poll.h>

#include <functional>
#include <vector>

namespace troupe {

/// Waits once for several descriptors, each with an action.
class poll_round {
 public:
  void watch(int fd, short events, std::function<void()> action) {
    polled_.push_back({fd, events, 0});
    actions_.push_back(std::move(action));
  }

  /// Waits until a descriptor is ready, and runs the actions of the ready ones in the order in which they
  /// were added. -1: no timeout.
  void run(int timeout_ms) {
    if (::poll(polled_.data(), polled_.size(), timeout_ms) < 0) return;
    for (std::size_t i = 0; i < polled_.size(); ++i)
      if (polled_[i].revents) actions_[i]();
  }

 private:
  std::vector<pollfd> polled_;
  std::vector<std::function<void()>> actions_;
};

}  // namespace troupe
