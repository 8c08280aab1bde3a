#pragma once
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace troupe {

/// A thread that runs rounds of work on request. It is started by the first request. Thread-safe.
class background_progress {
 public:
  /// round: called on that thread; returns whether to run another one.
  explicit background_progress(std::function<bool()> round) : round_(std::move(round)) {}
  ~background_progress() { stop(); }
  background_progress(const background_progress&) = delete;
  background_progress& operator=(const background_progress&) = delete;

  /// A round will begin after this call. Does nothing after stop().
  void request();
  /// Waits for the running round; no other one begins.
  void stop();

 private:
  void work();

  std::function<bool()> round_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_requested_ = false, is_stopping_ = false;
  std::thread thread_;
};

}  // namespace troupe
