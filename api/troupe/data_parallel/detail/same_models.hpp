#pragma once
#include <string>

#include "troupe/collective/communicator/communicator.hpp"
#include "troupe/nn/module.hpp"

namespace troupe::detail {

/// Checks that all members train the same model: compares `options` (as text), the names, shapes, dtypes and
/// frozen flags of the parameters, in order, and whether each module is in training or evaluation mode.
/// Throws std::invalid_argument, "[function] ...", on every member if a member differs from member 0; the
/// message names its rank and the first difference.
void require_same_models(const char* function, nn::Module& model, const std::string& options,
                         communicator& group);

}  // namespace troupe::detail
