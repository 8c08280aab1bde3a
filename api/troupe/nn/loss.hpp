#pragma once
#include <functional>

#include "troupe/autograd/functions.hpp"

namespace troupe::nn {

/// A loss function of a model's output and its targets. Returns sums over the batch, and a `loss` whose
/// backward gives `gradient_scale` times the gradient of the summed loss. It must be a pure, thread-safe
/// function. Before the first step, a Trainer evaluates it on a few made-up inputs
/// (function_fingerprint.hpp), and on the first microbatch, where it throws bad_input if the loss does not
/// count samples or ignores gradient_scale. CrossEntropy, MSELoss and any function of this signature can be
/// used.
using Loss = std::function<loss_result(const variable& output, const tensor& targets, double gradient_scale)>;

}  // namespace troupe::nn
