#pragma once
#include <functional>
#include <memory>
#include <string>

#include "troupe/job_error/job_errors.hpp"

namespace troupe::config {

/// The interface of a World to run_program (program_frame). Thread-safe.
class stoppable_world {
 public:
  virtual ~stoppable_world() = default;
  /// This process was sent `signal`.
  virtual void request_stop(int signal) = 0;
  /// Whether the whole job is to stop; otherwise this process ends alone.
  virtual bool stop_requested() const = 0;
  /// Whether the job has ended: nothing is left to wait for.
  virtual bool job_ended() const = 0;
  /// The signal that stopped the job; 0: none did.
  virtual int stopped_by() const = 0;
  /// An exception ended the program: reports its text to the job.
  virtual void report_failure(const std::string& what, failure_kind kind) = 0;
};

/// The interface of run_program to the World of its program: forwards signals to it, and reports the text of
/// the exception that ends the program, which run_program catches only after the World is destroyed.
/// Thread-safe.
class program_frame {
 public:
  virtual ~program_frame() = default;
  /// Forwards signals to `world` from now on.
  virtual void enter(std::shared_ptr<stoppable_world> world) = 0;
  /// Stops forwarding; returns when no call of the world is running.
  virtual void leave() = 0;
  /// As leave(), because of an exception: keeps `world` until the exception's text is reported to it.
  virtual void leave_failing() = 0;
};

}  // namespace troupe::config
