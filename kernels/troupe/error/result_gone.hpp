#pragma once
#include <stdexcept>

namespace troupe {

/// A process that was started again makes a call again whose tensors (Trainer::state_dict, Trainer::predict)
/// no process keeps any more, and which would not be the same if they were made now. The others go on.
class result_gone : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace troupe
