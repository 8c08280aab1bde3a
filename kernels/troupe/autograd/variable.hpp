#pragma once
#include "troupe/tensor/tensor.hpp"

namespace troupe {

class tape;

/// A value and where it was recorded. Without a tape, functions compute and record nothing.
struct variable {
  tensor value;
  tape* recorder = nullptr;  ///< outlives the variable's use
  int node = -1;             ///< of the recorder
};

}  // namespace troupe
