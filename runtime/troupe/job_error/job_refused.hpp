#pragma once
#include "troupe/error/errors.hpp"

namespace troupe {

/// The processes' options, plans or data differ. Every process throws it with the same message, and the job
/// reports it to the launcher. Programs exit with code 2.
class job_refused : public bad_input {
 public:
  using bad_input::bad_input;
};

}  // namespace troupe
