#pragma once
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace troupe {

/// A thread that does something again and again, whenever it is wanted; it exists from the first time.
/// Thread-safe.
class background_turns {
 public:
  /// turn: on that thread; whether another one is wanted.
  explicit background_turns(std::function<bool()> turn) : turn_(std::move(turn)) {}
  ~background_turns() { end(); }
  background_turns(const background_turns&) = delete;
  background_turns& operator=(const background_turns&) = delete;

  /// There is a turn that begins after this; not after end().
  void want();
  /// Waits for the turn that runs.
  void end();

 private:
  void work();

  std::function<bool()> turn_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_wanted_ = false, is_ending_ = false;
  std::thread thread_;
};

}  // namespace troupe
