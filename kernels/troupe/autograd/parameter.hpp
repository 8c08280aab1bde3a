#pragma once
#include <string>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// A tensor that is learned, and where its gradient accumulates. Both are undefined until the module that
/// owns the parameter is materialized; from then on the handles stay and only the elements change.
struct parameter {
  std::string name;  ///< within its module, for example "weight"
  tensor value;
  tensor gradient;
};

/// A parameter and its name in the whole model, for example "2.weight". Whoever owns the module keeps it
/// alive.
struct named_parameter {
  std::string name;
  parameter* target = nullptr;
};

}  // namespace troupe
