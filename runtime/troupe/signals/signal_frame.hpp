#pragma once
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "troupe/config/program_frame.hpp"
#include "troupe/config/stop_signals.hpp"
#include "troupe/posix/wake_event.hpp"
#include "troupe/signals/signal_pipe.hpp"
#include "troupe/signals/stop_decision.hpp"

namespace troupe::signals {

/// Signal handling of run_program. While a World exists, SIGTERM, SIGINT, SIGHUP and the stop_signals make a
/// separate thread call its request_stop(). A repeated stop (is_repeated_stop), or a stop that takes
/// longer than stop_limits, ends the process by the signal's default action. Without a World, signals have
/// their default effect.
class signal_frame final : public config::program_frame {
 public:
  explicit signal_frame(const stop_limits& limits, config::stop_signals more = {})
      : limits_(limits), more_(std::move(more)) {}
  ~signal_frame() override { leave(); }

  void enter(std::shared_ptr<config::stoppable_world> world) override;
  void leave() override;
  void leave_failing() override;

  /// The signal that stopped the job, if an exception ended the World; 0: none.
  int stopped_by() const { return failing_ ? failing_->stopped_by() : 0; }
  /// Reports the exception's text to the job of a World that an exception ended, and releases that World.
  /// Does nothing if there is none.
  void report_failure(const std::string& message, failure_kind kind);

 private:
  using clock = std::chrono::steady_clock;
  void watch();
  stop_progress standing();
  static std::chrono::milliseconds since(clock::time_point then);
  [[noreturn]] static void end_by(int signal, const char* why);

  const stop_limits limits_;
  const config::stop_signals more_;
  std::shared_ptr<config::stoppable_world> world_, failing_;
  std::optional<signal_pipe> signals_;
  posix::wake_event leaving_;
  std::thread thread_;

  // Used only by the thread.
  int signal_ = 0;
  clock::time_point signalled_;
  std::optional<clock::time_point> job_ended_;
};

}  // namespace troupe::signals
