#pragma once
#include <cstdint>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// Statistics of a tensor's elements. NaN elements count only in num_nan; if there are no others, the numbers
/// are NaN.
struct tensor_statistics {
  double min = 0;
  double max = 0;
  double mean = 0;
  double rms = 0;  ///< root of the mean square
  std::int64_t num_nan = 0;
};

tensor_statistics statistics_of(const tensor& value);

}  // namespace troupe
