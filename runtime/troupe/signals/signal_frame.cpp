#include "troupe/signals/signal_frame.hpp"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <utility>

namespace troupe::signals {

void signal_frame::enter(std::shared_ptr<config::stoppable_world> world) {
  leave();
  failing_.reset();
  world_ = std::move(world);
  signals_.emplace(more_);
  signal_ = 0;
  job_ended_.reset();
  thread_ = std::thread([this] { watch(); });
}

void signal_frame::leave() {
  if (thread_.joinable()) {
    leaving_.set();
    thread_.join();
    leaving_.clear();
  }
  signals_.reset();
  world_.reset();
}

void signal_frame::leave_failing() {
  auto world = world_;
  leave();
  failing_ = std::move(world);
}

void signal_frame::report_failure(const std::string& message, failure_kind kind) {
  if (auto world = std::exchange(failing_, nullptr)) world->report_failure(message, kind);
}

void signal_frame::watch() {
  while (true) {
    pollfd polled[2] = {{leaving_.fd(), POLLIN, 0}, {signals_->fd(), POLLIN, 0}};
    ::poll(polled, 2, signal_ ? 50 : -1);
    if (polled[0].revents) return;
    if (auto number = signals_->next()) {
      if (signal_ && !config::is_repeated_stop(*number, since(signalled_))) continue;
      if (signal_) end_by(*number, "came again");
      signal_ = *number;
      signalled_ = clock::now();
      world_->request_stop(signal_);
    }
    if (!signal_) continue;
    switch (decide_stop(standing(), limits_)) {
      case stop_decision::keep_waiting:
        break;
      case stop_decision::only_this_process:
        end_by(signal_, "came to this process alone");
      case stop_decision::grace_over:
        end_by(signal_, "was not followed by an end within the grace period (--grace)");
      case stop_decision::job_ended:
        end_by(signal_, "ended the job, but not the program");
    }
  }
}

std::chrono::milliseconds signal_frame::since(clock::time_point then) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - then);
}

stop_progress signal_frame::standing() {
  if (world_->job_ended() && !job_ended_) job_ended_ = clock::now();
  stop_progress made{since(signalled_), world_->stop_requested(), {}};
  if (job_ended_) made.since_job_ended = since(*job_ended_);
  return made;
}

void signal_frame::end_by(int signal, const char* why) {
  std::fprintf(stderr, "SIG%s %s: ending this process\n", ::sigabbrev_np(signal), why);
  std::fflush(nullptr);
  ::signal(signal, SIG_DFL);
  config::unblock_stop_signals({signal});
  ::kill(::getpid(), signal);
  // The first process of a container is not ended by a signal of its own.
  if (::getpid() == 1) ::_exit(128 + signal);
  while (true) ::pause();
}

}  // namespace troupe::signals
