#pragma once
#include <functional>

#include "troupe/autograd/variable.hpp"
#include "troupe/ops/batch_norm.hpp"

namespace troupe::nn {

/// Adds f32 elements over all processes that share statistics, in place; all call it alike.
using sum_over_members = std::function<void(tensor&)>;

/// batch_norm of troupe/autograd/functions.hpp over the batches of all members together, which may differ in
/// size: sums and counts are added over the members, once for the mean, once for the squares of the distances
/// from it, and once in the backward pass. Weight and bias get this member's part of their gradients. x: [N,
/// C, ...] on the CPU. Throws std::invalid_argument if a channel has fewer than two elements in all.
variable synced_batch_norm(const variable& x, parameter& weight, parameter& bias, tensor running_mean,
                           tensor running_variance, const batch_norm_options& options,
                           const sum_over_members& sum);

}  // namespace troupe::nn
