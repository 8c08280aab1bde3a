#pragma once
#include <string>

#include "troupe/nn/loss.hpp"
#include "troupe/optim/lr_schedule.hpp"
#include "troupe/optim/optimizer.hpp"

namespace troupe::detail {

// Functions cannot be compared, so their results on a few small inputs are. Two fingerprints are equal if the
// functions give the same bits on these inputs, or throw the same messages.

/// Evaluates the loss on a classifier's output and on a regression's output, each with targets.
std::string fingerprint(const nn::Loss& loss);
/// Steps two small parameters at step numbers from 0 to a million.
std::string fingerprint(const optim::Optimizer& optimizer);
/// Evaluates the factors of steps from 0 to a million.
std::string fingerprint(const optim::lr_schedule& schedule);
/// Fills a small tensor with as many axes as `extents`.
std::string fingerprint(const initializer& begin, const shape& extents);

}  // namespace troupe::detail
