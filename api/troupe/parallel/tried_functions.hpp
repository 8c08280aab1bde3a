#pragma once
#include <string>
#include <typeinfo>

#include "troupe/nn/loss.hpp"
#include "troupe/optim/optimizer.hpp"

namespace troupe {

// Functions cannot be compared, so they are tried on a few small numbers. The texts below are equal for
// functions that give the same bits there, or fail with the same words.

/// Of one output as a classifier gives it and one as a regression does, each with its targets.
std::string tried(const nn::Loss& loss);
/// Of two small parameters at steps from 0 to a million.
std::string tried(const optim::Optimizer& optimizer);
/// Of a tensor of as many axes as `extents`, none of them long.
std::string tried(const initializer& begin, const shape& extents);

/// As people write it.
std::string type_name(const std::type_info& type);

}  // namespace troupe
