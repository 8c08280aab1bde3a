#pragma once
#include <functional>
#include <memory>
#include <string>

namespace troupe {

/// What the World in a program offers to the program's frame. Thread-safe.
class stoppable_world {
 public:
  virtual ~stoppable_world() = default;
  /// This process was sent `signal`.
  virtual void request_stop(int signal) = 0;
  /// Whether the whole job is to stop, so that this process need not end by itself.
  virtual bool stop_wanted() const = 0;
  /// Whether the job has ended: nothing is left to wait for.
  virtual bool job_ended() const = 0;
  /// The signal that stopped the job; 0: none did.
  virtual int stopped_by() const = 0;
  /// An exception ended the program: the job hears with what.
  virtual void tell_failure(const std::string& what) = 0;
};

/// What a program's frame (run_program) does for the World in it: signals, and the text of the exception that
/// ends the program, which is known only when the World is gone from the stack. Thread-safe.
class program_frame {
 public:
  virtual ~program_frame() = default;
  /// From now on signals go to `world`.
  virtual void enter(std::shared_ptr<stoppable_world> world) = 0;
  /// No more signals go to the world; returns when none is on its way there.
  virtual void leave() = 0;
  /// As leave(), because of an exception: the frame keeps the world until it has told the exception's text.
  virtual void leave_failing() = 0;
};

}  // namespace troupe
