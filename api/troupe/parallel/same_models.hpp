#pragma once
#include <string>
#include <vector>

#include "troupe/autograd/parameter.hpp"
#include "troupe/collective/communicator.hpp"

namespace troupe {

/// Compares what all members are about to train together: `options` in words, and the names, shapes and
/// dtypes of the parameters and which of them are frozen, in order. Throws std::invalid_argument on every
/// member if one differs from member 0, naming its rank and the first difference.
void require_same_models(const std::vector<named_parameter>& parameters, const std::string& options,
                         communicator& group);

}  // namespace troupe
