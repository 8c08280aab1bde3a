#pragma once
#include <vector>

#include "troupe/tensor/tensor.hpp"

namespace troupe::nn::detail {

/// The tensors without PyTorch's counts of a batch norm's batches: "num_batches_tracked", i64 [], beside a
/// "running_mean". It uses them only with momentum=None, which BatchNorm2d has not; where a file has none it
/// begins at 0.
std::vector<named_tensor> without_batch_counts(std::vector<named_tensor> tensors);

}  // namespace troupe::nn::detail
