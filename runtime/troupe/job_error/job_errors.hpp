#pragma once

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>

#include "troupe/error/errors.hpp"

namespace troupe {

// The errors that speak of jobs, which programs catch.

/// Of a failure that a process reports to its job. It decides the exit code of the job, however its processes
/// end afterwards.
enum class failure_kind : std::uint8_t {
  error = 1,
  bad_input = 2  ///< what the user gave cannot be used: exit code 2, and a restart does not help
};

/// The job has failed in all its processes; the message says why and, if possible, what to do.
class job_failed : public std::runtime_error {
 public:
  explicit job_failed(const std::string& cause, failure_kind kind = failure_kind::error)
      : std::runtime_error(cause), kind_(kind) {}
  /// bad_input: a bad_input in an actor ended the job, such as one of a data set or a layer.
  failure_kind kind() const { return kind_; }

 private:
  failure_kind kind_;
};

/// The job stopped as requested (SIGTERM, SIGINT, World::request_stop); the message says what was saved.
/// Programs exit with code 128 + signal.
class job_stopped : public job_failed {
 public:
  job_stopped(int signal, const std::string& message) : job_failed(message), signal_(signal) {}
  int signal() const { return signal_; }

 private:
  int signal_;
};

/// The processes' options, plans or data differ. Every process throws it with the same message, and the job
/// reports it to the launcher. Programs exit with code 2.
class job_refused : public bad_input {
 public:
  using bad_input::bad_input;
};

/// A restarted process repeats a call (Trainer::state_dict, Trainer::predict) whose result is no longer
/// stored by any process and cannot be recomputed. The other processes continue.
class result_gone : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline failure_kind kind_of(const std::exception& problem) {
  return dynamic_cast<const bad_input*>(&problem) ? failure_kind::bad_input : failure_kind::error;
}

}  // namespace troupe
