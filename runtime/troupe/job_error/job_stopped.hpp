#pragma once
#include <string>

#include "troupe/job_error/job_failed.hpp"

namespace troupe {

/// The job stopped as requested (SIGTERM, SIGINT, World::request_stop); the message says what was saved.
/// Programs exit with code 128 + signal.
class job_stopped : public job_failed {
 public:
  job_stopped(int signal, const std::string& message) : job_failed(message), signal_(signal) {}
  int signal() const { return signal_; }

 private:
  int signal_;
};

}  // namespace troupe
