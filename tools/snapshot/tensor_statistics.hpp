#pragma once
#include <cstdint>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// What a glance at a tensor's elements tells. Elements that are NaN count in num_nan alone; without any
/// other, the numbers are NaN.
struct tensor_statistics {
  double min = 0;
  double max = 0;
  double mean = 0;
  double rms = 0;  ///< root of the mean square
  std::int64_t num_nan = 0;
};

tensor_statistics statistics_of(const tensor& value);

}  // namespace troupe
