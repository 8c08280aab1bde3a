#pragma once
#include <string>
#include <utility>
#include <vector>

#include "troupe/nn/loss.hpp"
#include "troupe/optim/optimizer.hpp"

namespace troupe::detail {

/// What an optimizer and a loss are, as names and values: {"optimizer", "Adam"}, {"optimizer lr", "0.001"},
/// ...,
/// {"loss", "CrossEntropy"}, ... Equal ones have equal effects. A function of the user's own is named by what
/// it does to a few small inputs (function_fingerprint.hpp).
///
/// The value of "optimizer" says which state it keeps: "SGD with momentum" is another one than "SGD".
std::vector<std::pair<std::string, std::string>> training_settings(const optim::Optimizer& optimizer,
                                                                   const nn::Loss& loss);

}  // namespace troupe::detail
