#pragma once
#include "troupe/error/errors.hpp"

namespace troupe {

/// The processes of the job are not about to do the same: bad_input that every one of them throws alike, and
/// that the launcher hears from the job itself. Programs end with exit code 2.
class job_refused : public bad_input {
 public:
  using bad_input::bad_input;
};

}  // namespace troupe
