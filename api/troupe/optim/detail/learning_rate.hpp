#pragma once
#include <cstdint>
#include <functional>

#include "troupe/optim/optimizer.hpp"

namespace troupe::optim::detail {

/// The learning rate that SGD, Adam, AdamW or LAMB uses in a step, from 0; empty for optimizers of the
/// program's own. Calls the options' schedule on whatever thread calls it.
std::function<double(std::uint64_t step)> learning_rate_of(const Optimizer& optimizer);

}  // namespace troupe::optim::detail
