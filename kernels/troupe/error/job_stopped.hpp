#pragma once
#include <string>

#include "troupe/error/errors.hpp"

namespace troupe {

/// The job was asked to stop (SIGTERM, SIGINT, World::request_stop) and has: the message says what was saved.
/// Programs end with exit code 128 + signal.
class job_stopped : public job_failed {
 public:
  job_stopped(int signal, const std::string& what) : job_failed(what), signal_(signal) {}
  int signal() const { return signal_; }

 private:
  int signal_;
};

}  // namespace troupe
