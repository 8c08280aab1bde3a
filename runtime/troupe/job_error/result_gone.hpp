#pragma once
#include <stdexcept>

namespace troupe {

/// A restarted process repeats a call (Trainer::state_dict, Trainer::predict) whose result is no longer
/// stored by any process and cannot be recomputed. The other processes continue.
class result_gone : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace troupe
