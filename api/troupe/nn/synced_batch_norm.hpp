#pragma once
#include <functional>

#include "troupe/autograd/variable.hpp"
#include "troupe/ops/batch_norm.hpp"

namespace troupe::nn {

/// An in-place all_reduce (sum) of f32 elements over all members that share statistics.
using sum_over_members = std::function<void(tensor&)>;

/// batch_norm of troupe/autograd/functions.hpp with statistics over the batches of all members, which may
/// differ in size. Reduces sums and counts over the members three times: for the mean, for the squared
/// deviations from it, and in the backward pass. Weight and bias get this member's partial gradients:
/// those of its batch. x: [N, C, ...] on the CPU. Throws std::invalid_argument if a channel has fewer than
/// two elements over all members.
variable synced_batch_norm(const variable& x, parameter& weight, parameter& bias, tensor running_mean,
                           tensor running_variance, const batch_norm_options& options,
                           const sum_over_members& sum);

}  // namespace troupe::nn
