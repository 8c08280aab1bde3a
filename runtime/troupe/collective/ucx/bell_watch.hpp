#pragma once
#include <atomic>
#include <functional>
#include <thread>

#include "troupe/collective/direct/board.hpp"

namespace troupe {

/// A thread that passes on the bell of a board to who sleeps on descriptors, which a futex is not.
class bell_watch {
 public:
  /// on_ring: on that thread, whenever others ring for the board's member.
  bell_watch(direct::board of, std::function<void()> on_ring);
  ~bell_watch();
  bell_watch(const bell_watch&) = delete;
  bell_watch& operator=(const bell_watch&) = delete;

 private:
  void watch(std::uint32_t heard);

  direct::board board_;
  std::function<void()> on_ring_;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

}  // namespace troupe
