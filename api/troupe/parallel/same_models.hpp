#pragma once
#include <string>
#include <vector>

#include "troupe/autograd/parameter.hpp"
#include "troupe/collective/communicator.hpp"

namespace troupe {

/// Checks that all members train the same model: compares `options` (as text) and the names, shapes, dtypes
/// and frozen flags of the parameters, in order. Throws std::invalid_argument on every member if a member
/// differs from member 0; the message names its rank and the first difference.
void require_same_models(const std::vector<named_parameter>& parameters, const std::string& options,
                         communicator& group);

}  // namespace troupe
