#pragma once
#include <functional>

#include "troupe/autograd/functions.hpp"

namespace troupe::nn {

/// The loss of a model's output and its targets: the sums over the batch, and a `loss` whose backward gives
/// `gradient_scale` times the gradient of the summed loss. It depends on nothing else, and several threads
/// may call it at once. A Trainer tries it before the first step: on a few made-up numbers, and on the first
/// microbatch, where one that does not count or scale is refused. CrossEntropy and MSELoss are such; so is
/// any function like this.
using Loss = std::function<loss_result(const variable& output, const tensor& targets, double gradient_scale)>;

}  // namespace troupe::nn
