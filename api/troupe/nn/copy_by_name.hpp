#pragma once
#include <vector>

#include "troupe/tensor/tensor.hpp"

namespace troupe::nn {

/// Copies the elements of `saved` to the tensors of the same names. Throws std::runtime_error, and copies
/// nothing, naming a tensor that is missing, unknown, there twice, or of another shape or dtype.
void copy_by_name(const std::vector<named_tensor>& to, const std::vector<named_tensor>& saved);

}  // namespace troupe::nn
