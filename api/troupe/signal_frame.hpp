#pragma once
#include <mutex>
#include <optional>
#include <thread>

#include "troupe/config/program_frame.hpp"
#include "troupe/posix/wake_event.hpp"
#include "troupe/signal_taker.hpp"
#include "troupe/stop_wait.hpp"

namespace troupe {

/// The frame of run_program. While there is a World, SIGTERM, SIGINT and SIGHUP ask it to stop, on a thread
/// of their own; a second one, or a stop that takes too long, ends the process by the signal. Before and
/// after, signals do what they always do.
class signal_frame final : public program_frame {
 public:
  explicit signal_frame(const stop_limits& limits) : limits_(limits) {}
  ~signal_frame() override { leave(); }

  void enter(std::shared_ptr<stoppable_world> world) override;
  void leave() override;
  void leave_failing() override;

  /// The signal that stopped the job of a World that an exception ended; 0: none did.
  int stopped_by() const { return failing_ ? failing_->stopped_by() : 0; }
  /// Tells the job of such a World the exception's text, and lets go of it. Does nothing if there is none.
  void tell_failure(const std::string& what);

 private:
  using clock = std::chrono::steady_clock;
  void watch();
  stop_wait standing(clock::time_point now);
  [[noreturn]] static void end_by(int signal, const char* why);

  const stop_limits limits_;
  std::shared_ptr<stoppable_world> world_, failing_;
  std::optional<signal_taker> signals_;
  wake_event leaving_;
  std::thread thread_;

  // The thread's own.
  int signal_ = 0;
  clock::time_point signalled_;
  std::optional<clock::time_point> job_ended_;
};

}  // namespace troupe
